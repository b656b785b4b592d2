import type { Status } from '../api/contracts.ts';
import { formatDuration, formatSize } from '../kernel/units.ts';
import { defineCommand } from './command.ts';
import { table } from './output.ts';
import { findRunning } from './running.ts';

export const command = defineCommand({
  details: '--json prints what GET /api/v1/status answers; the exit code is 0 whatever is wrong.',
  async run({ common, output }) {
    const running = await findRunning(common);
    const status = await running.call<Status>('/api/v1/status');
    if (common.json) output.json(status);
    else output.print(statusText(status, output.tty && process.env.NO_COLOR === undefined));
  },
});

type Tone = 'good' | 'warn' | 'bad' | 'dim' | 'strong';
type Paint = (text: string, tone: Tone | undefined) => string;

const TONES: Record<Tone, string> = { good: '32', warn: '33', bad: '31', dim: '2', strong: '1' };

const STATE_TONES: Record<string, Tone> = {
  serving: 'good',
  ready: 'good',
  well: 'good',
  starting: 'warn',
  idle: 'dim',
  draining: 'warn',
  cooling: 'warn',
  'half-open': 'warn',
  silent: 'warn',
  unknown: 'dim',
  retired: 'dim',
  open: 'bad',
  unwell: 'bad',
  down: 'bad',
  'not ready': 'bad',
};

/** The status as a person reads it at a glance: what is wrong stands first. */
export function statusText(status: Status, colour: boolean): string {
  const paint: Paint = (text, tone) => (colour && tone ? `\u001b[${TONES[tone]}m${text}\u001b[0m` : text);
  const sections = [
    summary(status, paint),
    section('Routes', routes(status, paint), paint),
    section('Releases', releases(status), paint),
    section('Pipelines', pipelines(status, paint), paint),
    section('Backends', backends(status, paint), paint),
    section('Limits', quotas(status), paint),
    section('Workers', workers(status, paint), paint),
    section('Changed live', overlays(status), paint),
    section('Waits for a restart', status.configuration.restart.join('\n'), paint),
    section('Notices', notices(status), paint),
    paint(footer(status), 'dim'),
  ];
  return sections.filter((text) => text !== '').join('\n\n');
}

function summary({ trouble, configuration, snapshot }: Status, paint: Paint): string {
  const head = `Armature at ${configuration.gateway}, snapshot ${snapshot.number}: `;
  if (trouble.length === 0) return head + paint('all well', 'good');
  const count = trouble.length === 1 ? '1 trouble' : `${trouble.length} troubles`;
  return [
    head + paint(count, 'bad'),
    ...trouble.map(({ message }) => `  ${paint('!', 'bad')} ${message}`),
  ].join('\n');
}

function section(title: string, text: string, paint: Paint): string {
  return text === '' ? '' : `${paint(title, 'strong')}\n${text.replace(/^/gm, '  ')}`;
}

function routes({ routes }: Status, paint: Paint): string {
  if (routes.length === 0) return 'none are configured';
  const rows = routes.map(({ route, ready, retired, waiting, targets, ladder }) => [
    route,
    state(retired ? 'retired' : ready ? 'ready' : 'not ready', paint),
    waiting,
    targets
      .map(({ backend, weight }) => (targets.length === 1 ? backend : `${backend} ${weight}`))
      .join(', '),
    ladder.join(', ') || '-',
  ]);
  return table(['ROUTE', 'STATE', 'WAITING', 'TARGETS', 'LADDER'], rows);
}

function releases({ releases }: Status): string {
  if (releases.length === 0) return '';
  const rows = releases.map(({ route, to, phase, step, steps, share, waitsFor, stuck }) => [
    route,
    to,
    phase,
    `${step} of ${steps}`,
    `${Number((share * 100).toFixed(2))} %`,
    stuck ?? waitsFor ?? '-',
  ]);
  return table(['ROUTE', 'TO', 'PHASE', 'STEP', 'SHARE', 'WAITS FOR'], rows);
}

function pipelines({ pipelines }: Status, paint: Paint): string {
  if (pipelines.length === 0) return '';
  const rows = pipelines.map(({ pipeline, ready, stages }) => [
    pipeline,
    state(ready ? 'ready' : 'not ready', paint),
    stages.join(', '),
  ]);
  return table(['PIPELINE', 'STATE', 'STAGES'], rows);
}

function backends({ backends }: Status, paint: Paint): string {
  if (backends.length === 0) return 'none are configured';
  // What engines say of themselves has a column where one of them says something.
  const told = backends.some(({ endpoints }) => endpoints.some(({ engine }) => engine));
  const rows = backends.flatMap(({ backend, engine, hardware, endpoints, host }) => {
    const about = [backend, engine, hardware];
    if (endpoints.length === 0) {
      return [[...about, host?.note || '-', state(host?.state ?? 'down', paint) + startOf(host), 0, 0]];
    }
    return endpoints.map((endpoint, i) => [
      ...(i === 0 ? about : ['', '', '']),
      endpoint.endpoint,
      state(endpoint.state, paint) +
        (endpoint.forMs === undefined ? '' : ` for ${formatDuration(endpoint.forMs)}`),
      endpoint.inflight,
      endpoint.limit,
      ...(told ? [ownLoad(endpoint.engine)] : []),
    ]);
  });
  const columns = ['BACKEND', 'ENGINE', 'HARDWARE', 'ENDPOINT', 'STATE', 'IN FLIGHT', 'LIMIT'];
  return table(told ? [...columns, 'OWN LOAD'] : columns, rows);
}

/** Such as `3 waiting, 5 running, cache 40%`. */
function ownLoad(engine: Status['backends'][number]['endpoints'][number]['engine']): string {
  if (!engine) return '-';
  const { waiting, running, cacheUsed, stale, ageMs } = engine;
  if (stale) return `unknown for ${formatDuration(ageMs)}`;
  return [
    ...(waiting === undefined ? [] : [`${Number(waiting.toFixed(1))} waiting`]),
    ...(running === undefined ? [] : [`${Number(running.toFixed(1))} running`]),
    ...(cacheUsed === undefined ? [] : [`cache ${Math.round(cacheUsed * 100)}%`]),
  ].join(', ');
}

/** How far a start has come: ` for 2s of 9s`, or ` again in 4s`. */
function startOf(host: Status['backends'][number]['host']): string {
  if (host?.startingMs === undefined) return '';
  if (host.startingMs < 0) return ` again in ${formatDuration(-host.startingMs)}`;
  const of = host.expectedMs === undefined ? '' : ` of ${formatDuration(host.expectedMs)}`;
  return ` for ${formatDuration(host.startingMs)}${of}`;
}

function quotas({ quotas }: Status): string {
  if (quotas.length === 0) return '';
  const rows = quotas.map(({ tenant, route, kind, left, max, fullMs }) => [
    tenant,
    route ?? '-',
    kind,
    left,
    max,
    fullMs === undefined ? '-' : formatDuration(fullMs),
  ]);
  return table(['TENANT', 'ROUTE', 'LIMIT', 'LEFT', 'AT MOST', 'ALL AGAIN IN'], rows);
}

function workers({ workers }: Status, paint: Paint): string {
  const rows = workers.map(({ part, state: is, inflight, factsWaiting, snapshot, pid }) => [
    part,
    state(is, paint),
    inflight,
    factsWaiting,
    snapshot ?? '-',
    pid ?? '-',
  ]);
  return table(['WORKER', 'STATE', 'IN FLIGHT', 'FACTS WAITING', 'SNAPSHOT', 'PID'], rows);
}

function overlays({ configuration }: Status): string {
  if (configuration.overlays.length === 0) return '';
  const rows = configuration.overlays.map(({ path, value, actor, at }) => [
    path,
    JSON.stringify(value),
    actor,
    at,
  ]);
  return table(['PATH', 'VALUE', 'BY', 'AT'], rows);
}

function notices({ configuration }: Status): string {
  return configuration.notices
    .map(({ path, place, message }) => `${path === '' ? '' : `${path} `}${message} (${place})`)
    .join('\n');
}

function footer({ configuration, ledger }: Status): string {
  const since = ledger.oldest === undefined ? '' : ` since ${ledger.oldest}`;
  return `configuration ${configuration.file}; ledger: ${ledger.events} events${since}, ${formatSize(ledger.bytes)}`;
}

function state(word: string, paint: Paint): string {
  return paint(word, STATE_TONES[word]);
}
