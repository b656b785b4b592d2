import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { type BackendSettings, settingsSchema } from '../src/config/schema/index.ts';
import { Asker } from '../src/control/parity/asker.ts';
import { type Random, seededRandom } from '../src/kernel/random.ts';
import { systemTimers } from '../src/kernel/timers.ts';
import type { GoldenAnswer } from '../src/releases/parity/answers.ts';
import { decide } from '../src/releases/parity/decisions.ts';
import { type GoldenPrompt, readGolden } from '../src/releases/parity/golden.ts';
import { type Measured, measure } from '../src/releases/parity/measuring.ts';
import { type Ask, inCompany, oneByOne, type Pass } from '../src/releases/parity/passes.ts';
import { Screened, screen } from '../src/releases/parity/screening.ts';
import { shuffled } from '../src/releases/statistics/sampled-texts.ts';
import { type Scene, scenesOf } from './parity/scenes.ts';

/**
 * `node bench/parity.ts [--prompts 400] [--runs 100] [--only chat|classifier] [--answers FOLDER]`: real models in several precisions, served
 * by hosts of Armature and asked as `armature parity run` asks them. What they answer is kept, in a folder where one is named, out of
 * which it is read the next time, and only what is missing is asked; then the very measuring that control does goes over it many times, in another order of prompts
 * each time, with changes of decisions planted and without.
 */

const { values } = parseArgs({
  options: {
    prompts: { type: 'string', default: '400' },
    runs: { type: 'string', default: '100' },
    only: { type: 'string' },
    answers: { type: 'string' },
  },
});
const PROMPTS = Number(values.prompts);
const RUNS = Number(values.runs);
const TOGETHER = 8;
/** Prompts that are answered and kept at one time. */
const BLOCK = 32;
/** The place of the answer alone that the backend's is compared with, after those of the screening; the next is the floor. */
const ALONE = 3;
const NEVER = new AbortController().signal;
const TERMS = { flipsMax: 0.03, alpha: 0.05 };
const SCENES = scenesOf(PROMPTS);

for (const [name, scene] of Object.entries(SCENES)) {
  if (values.only !== undefined && values.only !== name) continue;
  const golden = readGolden(scene.prompts.map((prompt) => JSON.stringify(prompt)).join('\n')).prompts;
  const answers = kept(name);
  await record(name, scene, golden, answers);
  console.log(`\n${name}: ${golden.length} golden prompts, reference ${scene.reference}`);
  for (const backend of Object.keys(scene.backends)) {
    const { verdict, reason, figures } = await again(golden, answers, backend, seededRandom(1));
    const { prompts, flips, floorFlips, nearTies, screened, divergence, topAgreement, harm } = figures;
    console.log(
      `  ${backend}: ${verdict} (${reason}) after ${prompts}: ${flips} flips, floor ${floorFlips}, near ties ${nearTies}; ` +
        `left out ${screened?.differ} that differ and ${screened?.nearTies} near ties` +
        (divergence
          ? `; KL mean ${divergence.mean.toPrecision(3)}, same first ${percent(topAgreement ?? 0)}`
          : '') +
        (harm ? `; lost ${harm.lost}, won ${harm.won}, p ${harm.p.toPrecision(3)}` : ''),
    );
    console.log(`    ${sharesOf(golden, answers, backend)}`);
  }
  await simulated('the same', golden, answers, scene.reference, 0);
  await simulated('0.2 % planted', golden, answers, scene.reference, 0.002);
  await simulated('7 % planted', golden, answers, scene.reference, 0.07);
}

/** What each backend answered, by prompt. */
interface Recorded {
  /** In the order in which a comparison asks: three to screen it, alone, and in company. */
  reference: Record<string, GoldenAnswer[]>;
  /** In the same company; of the reference as well. */
  backends: Record<string, Record<string, GoldenAnswer>>;
}

function kept(name: string): Recorded {
  const file = fileOf(name);
  if (file === undefined || !existsSync(file)) return { reference: {}, backends: {} };
  return JSON.parse(readFileSync(file, 'utf8')) as Recorded;
}

function keep(name: string, answers: Recorded): void {
  const file = fileOf(name);
  if (file === undefined) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(answers));
}

function fileOf(name: string): string | undefined {
  return values.answers === undefined ? undefined : join(values.answers, `${name}.json`);
}

/** Asks what was not answered yet, and adds it to the answers. */
async function record(
  name: string,
  { backends, reference }: Scene,
  golden: readonly GoldenPrompt[],
  answers: Recorded,
): Promise<void> {
  const missing = shuffled(
    golden.filter(({ id }) => answers.reference[id]?.length !== ALONE + 2),
    seededRandom(2),
  );
  if (missing.length === 0) return;
  const { asks, close } = await serving(backends);
  const others = Object.keys(backends).filter((backend) => backend !== reference);
  try {
    for (let from = 0; from < missing.length; from += BLOCK) {
      const some = missing.slice(from, from + BLOCK);
      const [ofReference, ...ofOthers] = await Promise.all([
        referenceAsked(asks[reference]!, some),
        ...others.map((backend) => inCompany(some, asks[backend]!, TOGETHER, NEVER)),
      ]);
      Object.assign(answers.reference, ofReference.before);
      for (const [i, pass] of [ofReference.same, ...ofOthers].entries()) {
        const of = (answers.backends[[reference, ...others][i]!] ??= {});
        for (const [{ id }, answer] of pass) of[id] = answer;
      }
      keep(name, answers);
      console.error(`  ${from + some.length} of ${missing.length} prompts`);
    }
  } finally {
    await close();
  }
}

/** As a comparison of it with itself asks: `same` is what it answers then as the other. */
async function referenceAsked(ask: Ask, golden: readonly GoldenPrompt[]) {
  const before: Record<string, GoldenAnswer[]> = {};
  const keeping: Ask = async (prompt, signal) => {
    const answer = await ask(prompt, signal);
    before[prompt.id] = [...(before[prompt.id] ?? []), answer];
    return answer;
  };
  const random = seededRandom(3);
  await screen({
    prompts: golden,
    reference: keeping,
    together: TOGETHER,
    random,
    signal: NEVER,
    onBlock: () => false,
  });
  const same: Pass = new Map();
  for (let from = 0; from < golden.length; from += TOGETHER) {
    const some = golden.slice(from, from + TOGETHER);
    await oneByOne(some, keeping, NEVER);
    await inCompany(some, keeping, TOGETHER, NEVER);
    for (const [prompt, answer] of await inCompany(some, ask, TOGETHER, NEVER)) same.set(prompt, answer);
  }
  return { before, same };
}

/** A fleet that serves the models, and how each is asked. */
async function serving(backends: Scene['backends']): Promise<{
  asks: Record<string, Ask>;
  close(): Promise<void>;
}> {
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
  const close = async () => {
    await asker.close();
    up.kill('SIGTERM');
    await new Promise((resolve) => up.once('exit', resolve));
    rmSync(folder, { recursive: true, force: true });
  };
  const places = await served(Object.keys(backends));
  const settings = settingsSchema.parse(config).backends as Record<string, BackendSettings>;
  const asks = [...places].map(([backend, endpoint]): [string, Ask] => [
    backend,
    (prompt, signal) => asker.ask({ backend, settings: settings[backend]!, endpoint }, prompt, signal),
  ]);
  return { asks: Object.fromEntries(asks), close };
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
  { reference, backends }: Recorded,
  backend: string,
  random: Random,
  planted: ReadonlySet<string> = new Set(),
): Promise<Measured> {
  const asked = new Map<string, number>();
  const ofReference: Ask = async ({ id }) => {
    const count = asked.get(id) ?? 0;
    asked.set(id, count + 1);
    return reference[id]![count]!;
  };
  const ofBackend: Ask = async ({ id }) =>
    planted.has(id) ? changed(reference[id]![ALONE]!) : backends[backend]![id]!;
  return measure({
    prompts: golden,
    reference: ofReference,
    backend: ofBackend,
    terms: TERMS,
    together: TOGETHER,
    random,
    signal: NEVER,
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

/** Of prompts that are kept and of those that are left out: how many the backend decides otherwise, and the reference itself. */
function sharesOf(golden: readonly GoldenPrompt[], { reference, backends }: Recorded, backend: string) {
  const screened = new Screened();
  for (const prompt of golden) {
    const [alone, ...others] = reference[prompt.id]!.slice(0, ALONE);
    screened.look(prompt, alone!, others);
  }
  const told = (name: string, some: readonly GoldenPrompt[]) => {
    const differ = (other: (id: string) => GoldenAnswer) =>
      some.filter(
        ({ id, decision }) =>
          decide(decision, reference[id]![ALONE]!).decision !== decide(decision, other(id)).decision,
      ).length / Math.max(1, some.length);
    const flips = percent(differ((id) => backends[backend]![id]!));
    const floor = percent(differ((id) => reference[id]![ALONE + 1]!));
    return `of ${some.length} ${name}: flips ${flips}, floor ${floor}`;
  };
  const scores = [...screened.deltas].map(([kind, delta]) => `${kind} ${delta.toPrecision(3)}`).join(', ');
  const [kept, left] = [screened.kept, [...screened.leftOut.keys()]];
  return `${told('kept', kept)}; ${told('left out', left)}; ${told('in all', golden)}; scores move by ${scores}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
