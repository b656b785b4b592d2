import {
  ApiFault,
  type EvidencePoint,
  type ReleaseOutcome,
  type ReleasesSurface,
  type ReleaseView,
  type Status,
} from '../../api/contracts.ts';
import type { LedgerService } from '../../events/ledger.ts';
import { inWords } from '../../events/words.ts';
import { pageAfter } from '../../kernel/page-after.ts';
import type { ReleaseReport } from '../../releases/canary/contracts.ts';
import type { Action, Evidence } from '../../releases/contracts.ts';
import { RELEASE_KIND, type ReleaseDocument } from './contracts.ts';
import { readAsked } from './requests.ts';
import type { ReleaseRun } from './run.ts';
import type { ReleaseService } from './service.ts';

/** What the management API shows and does of releases. */
export function releasesSurface(service: ReleaseService, ledger: LedgerService): ReleasesSurface {
  const { documents } = ledger.store;
  const one = async (id: string): Promise<ReleaseView | undefined> => {
    const run = service.find(id);
    if (run) return viewOf(run);
    const found = await documents.get(RELEASE_KIND, id);
    const body = found?.body as ReleaseDocument | undefined;
    return body?.ended && viewOfEnded(id, body);
  };
  /** What was meant for another name must not look as if it was done. */
  const nothing = async (id: string): Promise<ReleaseOutcome> => {
    const release = await one(id);
    if (release || service.isRoute(id)) return nothingOf(release, id);
    throw new ApiFault(404, 'not_found', `There is neither a route nor a release '${id}'.`);
  };
  return {
    async releases({ route, ...asked }) {
      const all = (await service.all()).filter(({ body }) => route === undefined || body.route === route);
      const page = pageAfter(all, ({ id }) => id, asked);
      if (!page) return undefined;
      const data = page.data.flatMap(({ id, body }) => {
        const run = service.find(id);
        return run ? [viewOf(run)] : body.ended ? [viewOfEnded(id, body)] : [];
      });
      return { data, next: page.next };
    },
    release: one,
    async releaseEvidence(id, { limit, after }) {
      if (!(await one(id))) return undefined;
      const release = service.find(id)?.id ?? id;
      const position = after === undefined ? undefined : await ledger.store.ledger.position(after);
      if (after !== undefined && position === undefined)
        throw new ApiFault(404, 'not_found', `There is no event '${after}'.`);
      const found = await ledger.store.ledger.events({
        type: 'evidence-gathered',
        subject: `release:${release}`,
        order: 'asc',
        limit,
        ...(position !== undefined && { after: position }),
      });
      const data = found.map(({ event }) => pointOf(event.id, event.at, event.data as unknown as Evidence));
      return { data, next: found.length === limit ? data.at(-1)!.event : null };
    },
    async startRelease(body, actor) {
      return viewOf(await service.start(readAsked(body), actor));
    },
    async promoteRelease(id, actor) {
      const run = service.find(id);
      if (!run) return nothing(id);
      if (run.kept.body.overtaken) {
        const message = `The targets of '${run.kept.body.route}' were edited in the file since the release began: abort it, or take the edit back.`;
        throw new ApiFault(409, 'conflict', message);
      }
      return promoted(run, await run.promote(actor));
    },
    async abortRelease(id, actor) {
      const run = service.find(id);
      if (!run || !(await run.abort(actor))) return nothing(id);
      return aborted(run);
    },
  };
}

function promoted(run: ReleaseRun, isNew: boolean): ReleaseOutcome {
  const { phase, kept } = run;
  const done = phase === 'promoted' && kept.body.intent === undefined;
  if (!isNew) return told(run, done, done ? 'It has all of the traffic already.' : 'It is on its way back.');
  return told(run, done, done ? 'Promoted.' : 'It is decided, and not carried out yet.');
}

function aborted(run: ReleaseRun): ReleaseOutcome {
  const { ended } = run.kept.body;
  if (!ended) return told(run, false, 'It is decided, and not carried out yet.');
  if (ended.left === undefined) return told(run, true, 'Rolled back.');
  return told(run, false, `It is over, but the targets of the file stay: ${ended.left}.`);
}

function told(run: ReleaseRun, done: boolean, message: string): ReleaseOutcome {
  const { ended } = run.kept.body;
  return { release: ended ? viewOfEnded(run.id, run.kept.body) : viewOf(run), done, message };
}

/** Nothing in progress is no failure: an abort that comes too late changes nothing. */
function nothingOf(release: ReleaseView | undefined, id: string): ReleaseOutcome {
  const message = release
    ? `The release ${release.id} is over: ${release.state}. Nothing was changed.`
    : `No release of '${id}' is in progress. Nothing was changed.`;
  return { release: release ?? null, done: false, message };
}

function viewOf(run: ReleaseRun): ReleaseView {
  return {
    ...shape(run.id, run.kept.body, run.report),
    state: 'running',
    share: run.share,
    ...(run.stuck && { stuck: inWords(run.stuck.code, run.stuck.figures) }),
  };
}

/** Those under way, at a glance. */
export function releasesAtAGlance(service: ReleaseService): Status['releases'] {
  return service.running.map((run) => {
    const { id, route, to, phase, step, steps, share, waitsFor, stuck, overtaken } = viewOf(run);
    const held = overtaken
      ? 'the targets were edited in the file: abort it, or take the edit back'
      : undefined;
    const why = held ?? stuck;
    const waits = waitsFor && { waitsFor: waitsFor.words };
    return { id, route, to, phase, step, steps, share, ...waits, ...(why !== undefined && { stuck: why }) };
  });
}

function viewOfEnded(id: string, body: Readonly<ReleaseDocument>): ReleaseView {
  const { how, at, report, reason, left } = body.ended!;
  return {
    ...shape(id, body, report),
    state: how,
    share: how === 'promoted' ? 1 : 0,
    endedAt: at,
    last: inFull(reason),
    ...(left !== undefined && { left }),
  };
}

function shape(
  id: string,
  body: Readonly<ReleaseDocument>,
  report: ReleaseReport,
): Omit<ReleaseView, 'state' | 'share'> {
  const { phaseEndsMs, endsMs, watchedUntilMs, waitsFor, last } = report;
  const { phase, step, steps, metrics, assignment, arms, sessions, pairs, skipped, gates, stableBroken } =
    report;
  return {
    id,
    route: body.route,
    to: body.to,
    ...(body.baseline !== undefined && { baseline: body.baseline }),
    phase,
    step,
    steps,
    plan: body.plan.plan,
    captured: body.captured,
    startedAt: body.startedAt,
    startedBy: body.startedBy,
    ...(phaseEndsMs !== undefined && { phaseEndsAt: iso(phaseEndsMs) }),
    ...(endsMs !== undefined && { endsAt: iso(endsMs) }),
    ...(watchedUntilMs !== undefined && { watchedUntil: iso(watchedUntilMs) }),
    ...(waitsFor && { waitsFor: inFull(waitsFor) }),
    ...(last && { last: inFull(last) }),
    overtaken: body.overtaken !== undefined,
    metrics,
    assignment,
    arms: arms as unknown as ReleaseView['arms'],
    sessions,
    pairs,
    skipped,
    gates,
    stableBroken,
    event: body.newest,
  };
}

const iso = (ms: number): string => new Date(ms).toISOString();

function inFull({ code, figures }: Action['reason']): NonNullable<ReleaseView['last']> {
  return { code, figures, words: inWords(code, figures) };
}

function pointOf(
  event: string,
  at: string,
  { worker, snapshot, share, arms, pairs }: Evidence,
): EvidencePoint {
  const count = ({ requests, failed }: Evidence['arms']['canary']) => ({ requests, failed });
  const counts = { canary: count(arms.canary), baseline: count(arms.baseline), stable: count(arms.stable) };
  return { event, at, worker, snapshot, share, arms: counts, pairs: pairs.length };
}
