// Asks one question and shows how its answer came about: what it was made from, its words as they come, the time of each
// stage, and what `armature why` says.
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

const RECORDED_WITHIN = 50; // looks, 100 ms apart
const WIDTH = 110;

/** Asks the pipeline; the first word of the answer comes after its last stage has begun, and what was found is known by then. */
export async function tell(question, call, library) {
  const request = `search-${randomUUID()}`;
  const begun = performance.now();
  console.log(`\nQuestion: ${question}`);
  const messages = [{ role: 'user', content: question }];
  const answer = await call.chat({ model: 'search', messages, stream: true }, request);
  const id = answer.headers.get('x-armature-id');
  if (!answer.ok) {
    console.log(`No answer: ${answer.status} ${await answer.text()}`);
    return;
  }
  const took = ((performance.now() - begun) / 1000).toFixed(2);
  await showWhatWasFound(library, request);
  process.stdout.write(`\nAnswer (its first word after ${took} s):\n  `);
  for await (const words of wordsOf(answer.body)) process.stdout.write(words.replaceAll('\n', '\n  '));
  console.log('\n');
  const degraded = answer.headers.get('x-armature-degraded');
  if (degraded) console.log(`Not everything answered in full: ${degraded}\n`);
  await showStages(call, id);
  console.log(`\narmature why ${id}\n${call.why(id)}`);
}

async function showWhatWasFound(library, request) {
  const kept = await fetch(`${library}/shown/${request}`).catch(() => undefined); // Without it the answer is still one.
  if (!kept?.ok) {
    console.log('\nNothing was looked up.');
    return;
  }
  const { passages, summary } = await kept.json();
  console.log('\nDocuments:');
  for (const [i, passage] of passages.entries()) {
    const [title, ...text] = passage.split('\n');
    console.log(`  ${i + 1}. ${title}\n     ${short(text.join(' '))}`);
  }
  console.log(`\nSummary:\n  ${summary.replaceAll('\n', '\n  ') || '(none)'}`);
}

function short(text) {
  return text.length > WIDTH ? `${text.slice(0, WIDTH)} ...` : text;
}

/** The words of a stream of chat chunks. */
async function* wordsOf(body) {
  let rest = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const { choices, error } = JSON.parse(line.slice(6));
      yield error ? `[${error.message}]` : (choices[0]?.delta.content ?? '');
    }
  }
}

/** A request is recorded a moment after its end. */
async function showStages(call, id) {
  let record;
  for (let i = 0; !record && i < RECORDED_WITHIN; i++) {
    await wait(100);
    record = await call.admin(`requests/${id}`);
  }
  if (!record) return;
  console.log('Stages:');
  for (const { code, stage, figures } of record.steps.filter(({ what }) => what === 'stage')) {
    const { tookMs, backend, class: found, items, tokensIn, tokensOut } = figures;
    const told = [
      code.replace('stage-', '').replaceAll('-', ' '),
      tookMs === undefined ? '' : `${tookMs} ms`,
      backend ? `by ${backend}` : '',
      found ? `intent: ${found}` : '',
      items === undefined ? '' : `${items} passages`,
      tokensOut ? `${tokensIn} tokens read, ${tokensOut} written` : '',
    ];
    console.log(`  ${stage.padEnd(8)} ${told.filter(Boolean).join(', ')}`);
  }
  console.log(`  all      ${Math.round(record.durationMs)} ms`);
}
