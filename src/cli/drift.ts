import type { DriftView } from '../api/contracts.ts';
import { allOf } from './all-of.ts';
import { type ActionGroup, defineAction } from './command.ts';
import { table } from './output.ts';
import { findRunning } from './running.ts';

/** `armature drift`: what is watched, by route and backend. `--json` prints what `/api/v1/drift` answers: `{"data": [...]}`. */

const ROUTE = { name: 'ROUTE', summary: 'A route that has `drift`.' };

const ls = defineAction({
  summary: 'list what is watched, and where something has changed',
  async run({ common, output }) {
    const data = await allOf<DriftView>(await findRunning(common), '/api/v1/drift');
    if (common.json) output.json({ data });
    else if (data.length === 0) output.note('Nothing is watched for drift, or nothing has come yet.');
    else {
      const rows = data.map((each) => [
        each.route,
        each.backend,
        each.rows,
        `${each.features.filter(({ state }) => state === 'watching').length}/${each.features.length}`,
        each.incident ? `${each.incident.feature} ${each.incident.direction}` : '-',
        each.incident?.state ?? '-',
      ]);
      output.print(table(['route', 'backend', 'rows', 'watched', 'changed', 'incident'], rows));
    }
  },
});

const show = defineAction({
  summary: 'show every feature of a route: evidence, effect, reference',
  arguments: [ROUTE],
  async run({ args: [route = ''], common, output }) {
    const page = await (await findRunning(common)).call<{ data: DriftView[] }>(
      `/api/v1/drift/${encodeURIComponent(route)}`,
    );
    if (common.json) {
      output.json(page);
      return;
    }
    if (page.data.length === 0) output.note('Nothing has come yet.');
    for (const each of page.data) print(each, (line) => output.print(line));
  },
});

function print(view: DriftView, say: (line: string) => void): void {
  say(`${view.route} at ${view.backend} (${view.model}), ${view.rows} answers`);
  const rows = view.features.map((feature) => {
    const [most] = feature.watches.toSorted((a, b) => b.evidence / b.bar - a.evidence / a.bar);
    return [
      feature.feature,
      feature.state,
      feature.referenceRows,
      feature.rows,
      most ? `${most.change} ${most.evidence.toPrecision(3)} of ${most.bar}` : '-',
      effectOf(feature.window),
    ];
  });
  say(table(['feature', 'state', 'reference', 'rows', 'evidence', 'last rows'], rows));
  const { incident, quality } = view;
  if (incident) {
    const { feature, direction, event, at, state, hook } = incident;
    say(
      `${state}: ${feature} ${direction} since about ${incident.since} rows before ${at}; armature why ${event}`,
    );
    if (hook)
      say(`hook: ${hook.state}${hook.job ? `, job ${hook.job}` : ''}${hook.error ? `: ${hook.error}` : ''}`);
  }
  if (quality && quality.labels > 0) {
    const estimate = quality.calibrated && quality.estimate;
    say(
      `labels: ${quality.labels} (${quality.state})${estimate ? `, estimated quality ${estimate.quality} (usual ${estimate.low} to ${estimate.high})` : ''}`,
    );
  }
}

function effectOf(window: Record<string, number> | null): string {
  if (!window) return '-';
  const [name, value] = Object.entries(window).find(([key]) => key !== 'rows') ?? ['', 0];
  return `${name} ${value.toPrecision(3)}`;
}

const refreeze = defineAction({
  summary: 'take what comes now as the new reference; an incident ends',
  arguments: [ROUTE],
  options: { backend: { value: 'BACKEND', summary: 'Only of this backend.' } },
  async run({ args: [route = ''], options, common, output }) {
    const path = `/api/v1/drift/${encodeURIComponent(route)}/refreeze`;
    const body = options.backend === undefined ? {} : { backend: options.backend };
    const running = await findRunning(common);
    const done = await running.call<{ route: string; backends: number }>(path, { method: 'POST', body });
    if (common.json) output.json(done);
    else output.print(`${done.route}: new references of ${done.backends} backends`);
  },
});

export const command: ActionGroup = { actions: { ls, show, refreeze }, defaultAction: 'ls' };
