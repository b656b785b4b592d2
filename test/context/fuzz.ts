import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Tokenizer } from '@huggingface/tokenizers';
import { seededRandom } from '../../src/kernel/random.ts';
import { boundOfText } from '../../src/pipelines/context/bound.ts';
import { type Candidate, changesOf, keptOf, messagesOf } from '../../src/pipelines/context/candidate.ts';
import { type Count, type Fit, fitTranscript } from '../../src/pipelines/context/fit.ts';
import type { Profile } from '../../src/pipelines/context/profile.ts';
import { boundOf, type Messages, promptOf, type Rest } from '../../src/pipelines/context/prompt.ts';
import { ChatTemplate } from '../../src/pipelines/context/template.ts';
import { readTokenizerFile } from '../../src/pipelines/context/tokenizer-file.ts';
import {
  bodyOf,
  type Message,
  readTranscript,
  type Transcript,
} from '../../src/pipelines/context/transcript.ts';
import { callIds, turnsOf } from '../../src/pipelines/context/turns.ts';
import { Chats, TEMPLATES } from './random-chats.ts';

/**
 * Random conversations, templates and windows through the rule, and what has to hold of each: never over the window, never a
 * call without its result or a result without its call that had one, no character cut, what must be kept kept, nothing of
 * callers evaluated, every kept message byte for byte. Throws at the first that does not hold, and says its number.
 */

export type CountText = (text: string) => number;

const bytes: CountText = boundOfText;

/** Counts by the tokenizer of a file, exactly. */
export function countBy(path: string): CountText {
  const tokenizer = new Tokenizer(readTokenizerFile(path), {});
  return (text) => tokenizer.encode(text, { add_special_tokens: false }).ids.length;
}

const templates = TEMPLATES.map((source) => new ChatTemplate(source, { bos: '<s>', eos: '</s>' }));

export interface Tally {
  whole: number;
  shortened: number;
  cut: number;
  unfit: number;
}

export function fuzz(count: number, seed: number, counters: readonly CountText[], step = 0): Tally {
  const tally: Tally = { whole: 0, shortened: 0, cut: 0, unfit: 0 };
  for (let at = 0; at < count; at++) {
    try {
      tally[one(new Chats(seededRandom(seed + at)), counters)]++;
    } catch (error) {
      throw new Error(`chat ${seed + at}: ${(error as Error).message}`, { cause: error });
    }
    if (step > 0 && (at + 1) % step === 0) console.log(`${at + 1} of ${count}`, tally);
  }
  return tally;
}

function one(chats: Chats, counters: readonly CountText[]): Fit['how'] {
  const tools = chats.chance(0.2)
    ? [{ type: 'function', function: { name: 'f', parameters: {} } }]
    : undefined;
  const sent = { model: 'm', messages: chats.messages(), seed: 1, ...(tools && { tools }) };
  const body = Buffer.from(JSON.stringify(sent));
  const transcript = readTranscript(body);
  if (!transcript) throw new Error('it cannot be read');
  const turns = turnsOf(transcript.messages, { first: chats.below(4), last: 1 + chats.below(4) });
  const profile = profileOf(chats);
  // The first is quick; what is looked for hardly hangs on who counts.
  const countText = chats.chance(0.1) ? chats.one(counters) : counters[0]!;
  const summary = chats.chance(0.3) ? chats.text(20) : undefined;
  const count = (messages: Messages) => countOf(profile, messages, transcript.rest, countText);
  const whole = count(messagesOf(transcript, turns, { out: 0 })).tokens;
  const rule = {
    budget: 1 + chats.below(whole * (chats.chance(0.3) ? 0.3 : 1.1)),
    cut: chats.chance(0.3),
    summary: summary === undefined ? 0 : 100,
  };
  const search = fitTranscript(transcript, turns, rule);
  let step = search.next();
  let asked = 0;
  while (!step.done) {
    asked += step.value.length;
    step = search.next(step.value.map((candidate) => count(messagesOf(transcript, turns, candidate))));
  }
  const fit = step.value;
  if (asked > 120) throw new Error(`${asked} candidates were counted`);
  check(transcript, turns, fit, rule.budget, count);
  if (fit.how === 'shortened' && summary !== undefined)
    checkBody(transcript, turns, { ...fit.candidate, summary });
  return fit.how;
}

function profileOf(chats: Chats): Profile {
  const template = chats.chance(0.9) ? chats.one(templates) : undefined;
  const opening = chats.chance(0.3) ? '<s>' : undefined;
  return {
    window: 1,
    reserve: 1,
    by: 'tokenizer',
    why: undefined,
    tokenizer: undefined,
    template,
    opening,
    imageTokens: 50,
    accepts: undefined,
  };
}

/** As the counter does it, in one go. */
function countOf(profile: Profile, messages: Messages, rest: Rest, countText: CountText): Count {
  const prompt = promptOf(profile, messages, rest);
  if (!prompt) return boundOf(profile, messages, rest);
  // Nothing that callers wrote is run: the word stands in no text.
  if (prompt.text.includes('evaluated')) throw new Error('a text of the caller was evaluated');
  return { tokens: countText(prompt.text) + prompt.beside, exact: prompt.exact };
}

function check(
  transcript: Transcript,
  turns: ReturnType<typeof turnsOf>,
  fit: Fit,
  budget: number,
  count: (messages: Messages) => Count,
): void {
  const { candidate } = fit;
  if (fit.how === 'unfit') return;
  const { tokens } = count(messagesOf(transcript, turns, candidate));
  if (tokens !== fit.count.tokens) throw new Error(`it has ${tokens} tokens, not ${fit.count.tokens}`);
  if (tokens > budget) throw new Error(`${tokens} tokens are over ${budget}`);
  checkBody(transcript, turns, candidate);
}

/** What would be sent, read again. */
function checkBody(transcript: Transcript, turns: ReturnType<typeof turnsOf>, candidate: Candidate): void {
  const kept = keptOf(transcript, turns, candidate);
  const changes = changesOf(transcript, turns, kept, candidate);
  const made = bodyOf(transcript, kept, changes);
  const read = JSON.parse(made.toString('utf8')) as { messages: Message['value'][]; seed: number };
  const { messages } = transcript;
  if (read.messages.length !== kept.length || read.seed !== 1) throw new Error('the body is another');
  for (const [at, index] of kept.entries()) {
    const { start, end, value } = messages[index]!;
    if ('armature' in read.messages[at]!) throw new Error('what is said to Armature went upstream');
    const same = transcript.body.toString('utf8', start, end);
    if (!changes.has(index) && !same.includes('"armature"') && !made.includes(same))
      throw new Error('bytes of a message changed');
    if (!changes.has(index) && JSON.stringify(read.messages[at]) !== JSON.stringify(value))
      throw new Error('a message changed');
  }
  const keeps = new Set(kept);
  for (const [at, message] of messages.entries()) {
    const must =
      message.pinned ||
      message.role === 'system' ||
      message.role === 'developer' ||
      turns.system.includes(at);
    if (must && !keeps.has(at)) throw new Error(`message ${at} must be kept`);
  }
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  if (lastUser >= 0 && !keeps.has(lastUser)) throw new Error('the last message of the user is gone');
  checkPairs(messages, keeps);
  const { cut } = candidate;
  if (cut) checkCut(messages[cut.message]!, cut);
}

/** Whoever had a partner before has it still. */
function checkPairs(messages: readonly Message[], keeps: ReadonlySet<number>): void {
  const callers = new Map<string, number>();
  for (const [at, { value }] of messages.entries()) {
    for (const id of callIds(value)) callers.set(id, at);
    const of = callers.get(String(value.tool_call_id));
    if (of === undefined || keeps.has(of) === keeps.has(at)) continue;
    throw new Error(`the call ${of} and its result ${at} were parted`);
  }
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

function checkCut({ value }: Message, { part, text }: NonNullable<Candidate['cut']>): void {
  const content = Array.isArray(value.content)
    ? (value.content[part] as { text: string }).text
    : String(value.content);
  if (text === content) return;
  const [head, tail] = splitAtMark(text, content);
  const boundaries = new Set([
    0,
    content.length,
    ...[...graphemes.segment(content)].map(({ index }) => index),
  ]);
  if (!boundaries.has(head) || !boundaries.has(content.length - tail)) throw new Error('a character was cut');
}

/** The lengths of beginning and end that are left of a text. */
function splitAtMark(text: string, content: string): [number, number] {
  const mark = '\n[...]\n';
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
    const tail = text.slice(at + mark.length);
    if (content.startsWith(text.slice(0, at)) && content.endsWith(tail)) return [at, tail.length];
  }
  throw new Error('what is left of a text is not its beginning and its end');
}

/** `node test/context/fuzz.ts --count 100000 --tokenizer FILE ...` */
if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '100000' },
      seed: { type: 'string', default: '1' },
      tokenizer: { type: 'string', multiple: true, default: [] },
    },
  });
  const there = values.tokenizer.filter((path) => existsSync(path));
  const began = performance.now();
  const tally = fuzz(Number(values.count), Number(values.seed), [bytes, ...there.map(countBy)], 5_000);
  console.log(
    `${values.count} held, ${there.length} tokenizers and bytes, ${Math.round((performance.now() - began) / 1000)} s`,
    tally,
  );
}
