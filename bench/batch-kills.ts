import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { seededRandom } from '../src/kernel/random.ts';
import {
  batchEnd,
  batchLine,
  batchWorld,
  jsonLines,
  linesOf,
  offOnce,
  startBatch,
} from '../test/integration/batch-world.ts';
import { chatAnswer } from '../test/upstream/scripts.ts';
import { eventually, pause } from '../test/upstream/waiting.ts';

/**
 * `node bench/batch-kills.ts [--lines N] [--kills N] [--workers N] [--seed N] [--term]`: one batch, in the middle of which everything, or
 * one worker, is killed at random moments (SIGKILL). Tells how many lines were asked again, and fails where a line is missing or
 * answered twice.
 */
const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '10000' },
    kills: { type: 'string', default: '12' },
    workers: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    /** SIGTERM instead: then no line is asked again. */
    term: { type: 'boolean', default: false },
  },
});
const [count, kills, workers] = [Number(values.lines), Number(values.kills), Number(values.workers)];
const random = seededRandom(Number(values.seed));

let asked = 0;
await using it = await batchWorld(
  async (x) => {
    asked++;
    const content: string = x.request.json().messages[0].content;
    it.engine.requests.splice(it.engine.requests.indexOf(x.request), 1);
    await pause(random.next() * 40);
    await x.json(chatAnswer(`answer:${content}`));
  },
  { top: { gateway: { workers } } },
);
const { openai, armature } = it;
const startedAt = systemClock.mono();
const made = await startBatch(
  openai,
  jsonLines(Array.from({ length: count }, (_, i) => batchLine(i, `question ${i} ${'x'.repeat(200)}`))),
);
const again: number[] = [];
for (let kill = 0; kill < kills; kill++) {
  const at = asked + Math.floor((random.next() * 2 * (count - asked)) / (kills - kill + 1));
  await eventually('more lines are asked', () => asked >= Math.min(at, count), 120_000);
  await pause(random.next() * 30);
  const whole = workers === 1 || random.next() < 0.5;
  if (values.term) {
    await armature.stop();
    await armature.up();
  } else if (whole) {
    for (const { pid } of armature.parts()) process.kill(pid, 'SIGKILL');
    await eventually('all are dead', () => armature.parts().length === 0);
    await armature.up();
  } else armature.kill(`gateway-${kill % workers}`);
  again.push(asked);
}
const batch = await batchEnd(openai, made.id, 300_000);
const seconds = (systemClock.mono() - startedAt) / 1000;
const output = await linesOf(openai, batch.output_file_id);
const wrong = output.filter(
  ({ custom_id: id, response }) =>
    !response.body.choices[0].message.content.startsWith(`answer:question ${id.slice(2)} `),
);
const { twice, missing, strange } = offOnce(output, count);
console.log(
  JSON.stringify({
    status: batch.status,
    counts: batch.request_counts,
    kills,
    workers,
    asked,
    askedAgainPerKill: Math.round(((asked - count) / Math.max(1, kills)) * 10) / 10,
    twice: twice.length,
    missing,
    strange,
    wrong: wrong.length,
    seconds: Math.round(seconds * 10) / 10,
  }),
);
const mayAsk = count + (values.term ? 0 : 60 * kills);
if (twice.length + missing + strange + wrong.length > 0 || asked > mayAsk) process.exitCode = 1;
