import type { ReleaseOutcome, ReleaseView } from '../api/contracts.ts';
import { allOf } from './all-of.ts';
import { type ActionGroup, askedWrongly, type CommonOptions, defineAction, failed } from './command.ts';
import type { Output } from './output.ts';
import { releaseText } from './release-text.ts';
import { findRunning, post, Refusal } from './running.ts';

const ROUTE = { name: 'ROUTE', summary: 'The name of a route, or the id of a release.' };

const start = defineAction({
  summary: 'begin to move a route to a backend, on evidence',
  arguments: [{ name: 'ROUTE', summary: 'The route that is moved.' }],
  options: {
    to: { value: 'BACKEND', summary: 'Where it is moved to: a name under `backends`.' },
    plan: {
      value: '1,5,25,50,100',
      summary: 'Percent of the sessions, step by step; auto: as fast as the evidence allows.',
      parse: readPlan,
    },
    shadow: {
      value: 'PERCENT',
      summary: 'Copies of requests, compared before callers meet it.',
      parse: readNumber,
    },
    deadline: { value: '24h', summary: 'What is not certified by then is rolled back.' },
    alpha: { value: '0.05', summary: 'The chance of a false abort.', parse: readNumber },
    baseline: { value: 'BACKEND', summary: 'Answers the arm that it is compared with.' },
  },
  details:
    'What is not given is as under routes.ROUTE.release of the configuration. --json prints the release, as GET /api/v1/releases/ID does.',
  async run({ args: [route = ''], options: { to, ...given }, common, output }) {
    if (to === undefined) throw askedWrongly('say where it is moved to: --to BACKEND');
    const asked = { route, to, ...given };
    const release = await post<ReleaseView>(common, '/api/v1/releases', asked).catch(flagsAtFault);
    if (common.json) output.json(release);
    else {
      output.print(releaseText(release));
      output.note(
        `armature release status ${route} shows how it goes; armature release abort ${route} takes it back`,
      );
    }
  },
});

const status = defineAction({
  summary: 'show where releases stand, what is known, and what they wait for',
  arguments: [{ ...ROUTE, optional: true }],
  details:
    'Without ROUTE all that are under way; with it the newest of that route. --json prints {"releases": [...]}, each as GET /api/v1/releases/ID has it.',
  async run({ args: [name], common, output }) {
    const releases = await found(common, name);
    if (common.json) output.json({ releases });
    else if (releases.length === 0)
      output.note(
        name === undefined
          ? 'No release is under way: armature release start ROUTE --to BACKEND'
          : `There was no release of '${name}' yet: armature release start ${name} --to BACKEND`,
      );
    else output.print(releases.map(releaseText).join('\n\n'));
  },
});

const promote = defineAction({
  summary: 'give it all of the traffic, whatever the evidence',
  arguments: [ROUTE],
  details: '--json prints {"done", "message", "release"}.',
  run: ({ args: [name = ''], common, output }) => give('promote', name, common, output),
});

const abort = defineAction({
  summary: 'restore what the route had before, over the file too',
  arguments: [ROUTE],
  details:
    'Where nothing is in progress nothing is changed, and it says so. --json prints {"done", "message", "release"}.',
  run: ({ args: [name = ''], common, output }) => give('abort', name, common, output),
});

export const command: ActionGroup = { actions: { start, status, promote, abort }, defaultAction: 'status' };

async function found(common: CommonOptions, name: string | undefined): Promise<ReleaseView[]> {
  const running = await findRunning(common);
  if (name === undefined) {
    const all = await allOf<ReleaseView>(running, '/api/v1/releases');
    return all.filter(({ state }) => state === 'running');
  }
  if (/^rel_[0-9a-z]+$/.test(name))
    return [await running.call<ReleaseView>(`/api/v1/releases/${encodeURIComponent(name)}`)];
  const asked = new URLSearchParams({ route: name, limit: '1' });
  const { data } = await running.call<{ data: ReleaseView[] }>(`/api/v1/releases?${asked}`);
  // A route that is gone may still have had releases; a name without either is a mistake.
  if (data.length === 0) {
    const routes = await allOf<{ name: string }>(running, '/api/v1/routes');
    if (!routes.some((route) => route.name === name))
      throw failed(`There is no route '${name}', and there was no release of it.`);
  }
  return data;
}

async function give(
  what: 'promote' | 'abort',
  name: string,
  common: CommonOptions,
  output: Output,
): Promise<number> {
  const path = `/api/v1/releases/${encodeURIComponent(name)}/${what}`;
  const outcome = await post<ReleaseOutcome>(common, path);
  const { done, message, release } = outcome;
  if (common.json) output.json(outcome);
  else output.print(release ? `${release.id} (${release.route} to ${release.to}): ${message}` : message);
  // Nothing that could be taken back is no failure; nothing that could be promoted is one.
  const isSo =
    what === 'promote'
      ? release?.state === 'promoted'
      : release?.state !== 'running' && release?.left === undefined;
  return done || isSo ? 0 : 1;
}

/** What no release can begin with was asked wrongly, whoever found it out. */
function flagsAtFault(error: unknown): never {
  throw error instanceof Refusal && error.status === 400 ? askedWrongly(error.message) : error;
}

function readPlan(text: string): number[] | 'auto' {
  return text === 'auto' ? 'auto' : text.split(',').map(readNumber);
}

function readNumber(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw askedWrongly(`expected a number, got '${text}'`);
  return value;
}
