import { type CertificateView, type ParityMatrix, REQUEST_BYTES_MAX } from '../api/contracts.ts';
import { readText, systemIo } from '../config/files.ts';
import { pause, systemTimers } from '../kernel/timers.ts';
import { parseDuration } from '../kernel/units.ts';
import { GoldenFault, readGolden } from '../releases/parity/golden.ts';
import { allOf } from './all-of.ts';
import {
  type ActionGroup,
  askedWrongly,
  type CommonOptions,
  defineAction,
  failed,
  wholeNumber,
} from './command.ts';
import { type Output, table } from './output.ts';
import { findRunning, isAway, type Running } from './running.ts';

const LOOK_MS = 500;
/** So often in a row control may be away, as while it is started again. */
const AWAY_MAX = 60;
const AGE_MS_MIN = 1000;
const ID = { name: 'ID', summary: 'par_..., as `parity run` and `parity ls` tell it.' };

const run = defineAction({
  summary: 'compare a backend with another on golden prompts, and certify that they mean the same',
  arguments: [
    { name: 'REFERENCE', summary: 'The backend that is as it should be.' },
    { name: 'BACKEND', summary: 'The one that is compared with it.' },
  ],
  options: {
    golden: { value: 'FILE', summary: 'Golden prompts, one JSON object a line.' },
    flipsMax: {
      value: 'SHARE',
      summary: 'The bound of decisions that differ. Default: 0.03.',
      parse: shareOf,
    },
    alpha: { value: 'SHARE', summary: 'The chance of a false verdict. Default: 0.05.', parse: shareOf },
    together: {
      value: 'N',
      summary: 'Requests at once where they are asked in company. Default: 8.',
      parse: wholeNumber(1, 64),
    },
    age: { value: 'DURATION', summary: 'How long a certificate holds. Default: 30d.', parse: durationOf },
    detach: { summary: 'Does not wait for the verdict.' },
  },
  details:
    'Exit 0: certified. Exit 1: rejected, or undecided. Exit 2: the golden set, or an option, cannot be used.',
  async run({ args: [reference = '', backend = ''], options, common, output }) {
    const { golden: file, flipsMax, alpha, together, age, detach } = options;
    if (file === undefined) throw askedWrongly('--golden FILE is needed: what both are to be asked');
    const running = await findRunning(common);
    const body = {
      reference,
      backend,
      golden: { name: file, text: goldenIn(file) },
      ...(flipsMax !== undefined && { flipsMax }),
      ...(alpha !== undefined && { alpha }),
      ...(together !== undefined && { together }),
      ...(age !== undefined && { ageMs: age }),
    };
    let found: CertificateView = await running.call('/api/v1/parity', { method: 'POST', body });
    if (!detach) found = await ended(common, found, output);
    if (common.json) output.json(found);
    else if (detach) output.print(`${found.id} runs: armature parity show ${found.id}`);
    else shown(found, output);
    return detach || found.verdict === 'certified' ? 0 : 1;
  },
});

const ls = defineAction({
  summary: 'list comparisons and their certificates, newest first',
  async run({ common, output }) {
    const all = await allOf<CertificateView>(await findRunning(common), '/api/v1/parity');
    if (common.json) output.json({ parity: all });
    else if (all.length === 0) output.note('Nothing was compared yet.');
    else {
      const rows = all.map((each) => [
        each.id,
        each.reference,
        each.backend,
        standingOf(each),
        `${each.figures.flips}/${each.figures.prompts}`,
        each.at,
      ]);
      output.print(table(['id', 'reference', 'backend', 'standing', 'flips', 'at'], rows));
    }
  },
});

const show = defineAction({
  summary: 'show one comparison with its figures',
  arguments: [ID],
  async run({ args: [id = ''], common, output }) {
    const found = await one(await findRunning(common), id);
    if (common.json) output.json(found);
    else shown(found, output);
  },
});

const stop = defineAction({
  summary: 'stop a comparison that runs',
  arguments: [ID],
  async run({ args: [id = ''], common, output }) {
    const running = await findRunning(common);
    const path = `/api/v1/parity/${encodeURIComponent(id)}`;
    const said: { stopped: boolean } = await running.call(path, { method: 'DELETE' });
    if (common.json) output.json(said);
    else output.print(said.stopped ? `${id} is stopped` : `${id} does not run`);
  },
});

const matrix = defineAction({
  summary: 'show how each pair of backends stands',
  async run({ common, output }) {
    const running = await findRunning(common);
    const found: ParityMatrix = await running.call('/api/v1/parity/matrix');
    if (common.json) {
      output.json(found);
      return;
    }
    if (found.backends.length === 0) {
      output.note('Nothing was compared yet.');
      return;
    }
    const cell = (reference: string, backend: string) => {
      const at = found.cells.find((each) => each.reference === reference && each.backend === backend);
      if (!at?.newer) return at?.standing ?? '-';
      return `${at.standing} (newer: ${at.newer.reason ?? at.newer.state})`;
    };
    const rows = found.backends.map((reference) => [
      reference,
      ...found.backends.map((backend) => cell(reference, backend)),
    ]);
    output.print(table(['reference', ...found.backends], rows));
  },
});

export const command: ActionGroup = { actions: { ls, run, show, matrix, stop }, defaultAction: 'ls' };

function one(running: Running, id: string): Promise<CertificateView> {
  return running.call(`/api/v1/parity/${encodeURIComponent(id)}`);
}

async function ended(
  common: CommonOptions,
  begun: CertificateView,
  output: Output,
): Promise<CertificateView> {
  let found = begun;
  let told = '';
  let away = 0;
  while (found.state !== 'ended') {
    const note = noteOf(found);
    if (note !== told) output.note(note);
    told = note;
    await pause(systemTimers, LOOK_MS);
    try {
      // Found anew: one that was started again has another token.
      found = await one(await findRunning(common), begun.id);
      away = 0;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (++away > AWAY_MAX)
        throw failed(`${error.message}; what came of it: armature parity show ${begun.id}`);
    }
  }
  return found;
}

function noteOf({ figures, golden, reference }: CertificateView): string {
  const { prompts, flips, floorFlips, screened } = figures;
  if (prompts === 0)
    return `${reference} alone and in company: ${screened?.prompts ?? 0} of ${golden.prompts} prompts`;
  return `${prompts} of ${golden.prompts - leftOutOf(figures)} prompts, ${flips} flips (floor ${floorFlips})`;
}

const leftOutOf = ({ screened }: CertificateView['figures']) =>
  screened ? screened.differ + screened.nearTies : 0;

const standingOf = ({ state, verdict, expired }: CertificateView) =>
  state === 'running' ? 'running' : expired ? `expired: ${expired.cause}` : (verdict ?? 'undecided');

function shown(found: CertificateView, output: Output): void {
  const { figures, reference, backend } = found;
  output.print(
    `${standingOf(found)}: ${backend} against ${reference}${found.words ? `. ${found.words}` : ''}`,
  );
  const { parted, divergence, harm, samples } = figures;
  const percent = (value: number | null) => (value === null ? '-' : `${(100 * value).toFixed(2)} %`);
  const rows: [string, string][] = [
    [
      'flips',
      `${figures.flips} of ${figures.prompts}: ${percent(figures.flipsRate)}, at most ${percent(figures.flipsAtMost)}`,
    ],
    ['floor', `${figures.floorFlips} of the reference against itself, ${found.together} together`],
    ['near ties', String(figures.nearTies)],
    ...leftOutRow(figures),
    [
      'evidence',
      `below ${percent(found.flipsMax)}: ${figures.certifies}, above half of it: ${figures.rejects}; enough: ${1 / found.alpha}`,
    ],
  ];
  if (parted)
    rows.push([
      'parting',
      `${percent(parted.rate)} of tokens, at most ${percent(parted.atMost)}, of ${parted.exposed}; median place ${parted.first ?? '-'}`,
    ]);
  if (divergence)
    rows.push([
      'divergence',
      `mean ${divergence.mean.toPrecision(3)}, p99 ${divergence.p99.toPrecision(3)} nat; same first ${percent(figures.topAgreement)}`,
    ]);
  if (harm)
    rows.push([
      'harm',
      `${harm.lost} lost, ${harm.won} won of ${harm.prompts}: p ${harm.p.toPrecision(3)}, lost at most ${percent(harm.lostAtMost)}`,
    ]);
  if (samples)
    rows.push(['samples', `p ${samples.p.toPrecision(3)}, tokens alike ${percent(samples.tokensAlike)}`]);
  for (const [cause, count] of Object.entries(figures.skipped)) rows.push([cause, String(count)]);
  if (found.expired?.what !== undefined) rows.push(['expired', found.expired.what]);
  if (found.event !== undefined) rows.push(['why', `armature why ${found.expired?.event ?? found.event}`]);
  output.print(table(['', found.id], rows));
}

/** Prompts that were not compared, as the reference is not sure of them. */
function leftOutRow({ screened }: CertificateView['figures']): [string, string][] {
  if (!screened) return [];
  const { prompts, differ, nearTies } = screened;
  const share = ((100 * (differ + nearTies)) / Math.max(1, prompts)).toFixed(1);
  return [
    [
      'left out',
      `${share} % of ${prompts}: ${differ} that it decides one way and another, ${nearTies} near ties`,
    ],
  ];
}

/** Looked at here already, so that a set that cannot be used is not taken for a verdict. */
function goldenIn(file: string): string {
  const read = readText(systemIo, file, REQUEST_BYTES_MAX);
  if ('cause' in read) throw askedWrongly(`the golden set ${file} ${read.cause}`);
  try {
    readGolden(read.text);
  } catch (error) {
    throw error instanceof GoldenFault ? askedWrongly(`${file}: ${error.message}`) : error;
  }
  return read.text;
}

function shareOf(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < 0.5))
    throw askedWrongly(`expected a share above 0 and below 0.5, got '${text}'`);
  return value;
}

function durationOf(text: string): number {
  const value = parseDuration(text);
  if (value === undefined || value < AGE_MS_MIN)
    throw askedWrongly(`expected a duration of a second or more, such as 24h or 30d, got '${text}'`);
  return value;
}
