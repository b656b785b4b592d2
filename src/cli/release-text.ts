import type { ReleaseView } from '../api/contracts.ts';
import { table } from './output.ts';

type Metric = ReleaseView['metrics'][number];

/** A release as a person reads it: where it stands and until when, what is known of each metric, what it waits for. */
export function releaseText(release: ReleaseView): string {
  const { id, route, to, state, last, left, waitsFor, stuck, overtaken } = release;
  return [
    `${id}: ${route} to ${to}, ${standing(release)}`,
    `  began     ${release.startedAt} by ${release.startedBy}, from ${targetsText(release)}`,
    ...(state === 'running' ? deadlines(release) : [`  ended     ${release.endedAt}`]),
    ...(last ? [`  last      ${last.words}`] : []),
    ...(left === undefined ? [] : [`  left      The targets of the file stay: ${left}.`]),
    ...(overtaken
      ? ['  held      The targets were edited in the file: abort it, or take the edit back.']
      : []),
    ...(stuck === undefined ? [] : [`  stuck     ${stuck}`]),
    ...(state === 'running' && waitsFor ? [`  waits     ${waitsFor.words}`] : []),
    ...gatesText(release),
    ...evidenceText(release),
  ].join('\n');
}

function standing({ state, phase, step, steps, share, plan }: ReleaseView): string {
  if (state !== 'running') return state;
  if (phase === 'gates' || phase === 'shadow') return `phase ${phase}`;
  const percent = `${Number((share * 100).toFixed(2))} % of the sessions`;
  if (phase !== 'canary') return `phase ${phase}, ${percent}`;
  return `phase canary, ${plan === 'auto' ? 'steps by evidence' : `step ${step} of ${steps}`}, ${percent}`;
}

function targetsText({ captured }: ReleaseView): string {
  return captured
    .filter(({ weight }) => weight > 0)
    .map(({ backend, weight }) => (captured.length === 1 ? backend : `${backend} ${weight}`))
    .join(', ');
}

function deadlines({ phaseEndsAt, endsAt, watchedUntil }: ReleaseView): string[] {
  if (watchedUntil !== undefined)
    return [`  watched   until ${watchedUntil}; an abort takes it back until then`];
  if (endsAt === undefined) return [];
  const phase = phaseEndsAt === undefined || phaseEndsAt === endsAt ? '' : `, this phase ${phaseEndsAt}`;
  return [`  deadline  ${endsAt}${phase}; then it is rolled back`];
}

function gatesText({ gates }: ReleaseView): string[] {
  const told = Object.entries(gates).map(([gate, is]) => `${gate} ${is}`);
  return told.length === 0 ? [] : [`  gates     ${told.join(', ')}`];
}

function evidenceText({ metrics, arms, sessions, pairs, skipped }: ReleaseView): string[] {
  const { canary, stable, baseline } = arms;
  const lines = [
    `  seen      ${sessions.all} sessions of the canary (${sessions.step} at this step), ${canary.requests} requests, ${canary.failed} failed; stable ${stable.requests + baseline.requests}, ${stable.failed + baseline.failed} failed`,
    ...copiesText(pairs, skipped),
  ];
  if (metrics.length === 0) return lines;
  const rows = metrics.map((metric) => [
    metric.metric,
    metric.canary,
    metric.others,
    ofWhat(metric.abort, metric.abortAt),
    metric.certified ? 'yes' : ofWhat(metric.certificate, metric.certifyAt),
  ]);
  const head = ['METRIC', 'CANARY', 'OTHERS', 'EVIDENCE OF HARM', 'CERTIFIED'];
  return [...lines, table(head, rows).replace(/^/gm, '  ')];
}

/** How many answers to copies were compared, and how many not, by cause. */
function copiesText(pairs: number, skipped: ReleaseView['skipped']): string[] {
  const causes = Object.entries(skipped).map(([cause, count]) => `${count} ${cause}`);
  if (pairs === 0 && causes.length === 0) return [];
  return [
    `  copies    ${pairs} answers compared${causes.length === 0 ? '' : `; not compared: ${causes.join(', ')}`}`,
  ];
}

const ofWhat = (evidence: Metric['abort'], needed: number): string =>
  `${Number(evidence.toPrecision(3))} of ${Number(needed.toPrecision(3))}`;
