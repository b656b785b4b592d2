import { ApiFault, type RetirementsSurface, type RetirementView } from '../../api/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import { pageAfter } from '../../kernel/page-after.ts';
import { parseDuration } from '../../kernel/units.ts';
import { orRefused } from '../registry/refusals.ts';
import type { RetirementRun } from './run.ts';
import type { RetirementService } from './service.ts';

/** What the management API shows and does of retirements. */
export function retirementsSurface(service: RetirementService, clock: Clock): RetirementsSurface {
  const view = (run: RetirementRun) => viewOf(run, clock.wall());
  return {
    async planRetirement({ name, kind, window }) {
      return orRefused(service.plan({ name, kind, windowMs: msOf(window) }));
    },
    async startRetirement({ name, kind, window, watch }, actor) {
      const asked = { name, kind, windowMs: msOf(window), watchMs: msOf(watch) };
      return view(await orRefused(service.start(asked, actor)));
    },
    retirements(asked) {
      const page = pageAfter(service.all, ({ id }) => id, asked);
      if (!page) throw new ApiFault(404, 'not_found', `There is no retirement '${asked.after}'.`);
      return { ...page, data: page.data.map(view) };
    },
    retirement: (id) => view(service.one(id)),
    async undoRetirement(id, actor) {
      const run = service.one(id);
      await run.undo(actor);
      return view(run);
    },
    async finishRetirement(id, actor) {
      const run = service.one(id);
      await orRefused(run.finish(actor));
      return view(run);
    },
  };
}

/** Throws an ApiFault for what is no duration. */
function msOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new ApiFault(400, 'invalid_request', `'${text}' is no duration, such as 10m or 30d.`);
  return ms;
}

function viewOf({ id, body, stuck }: RetirementRun, nowMs: number): RetirementView {
  const { subject, state, startedAt, startedBy, watchMs, quietSinceMs, calls, lastCall, exported, finished } =
    body;
  const quiet = state === 'watching' && quietSinceMs !== undefined;
  return {
    id,
    subject,
    state,
    startedAt,
    startedBy,
    watchSeconds: watchMs / 1000,
    ...(quiet && { quietSeconds: Math.max(0, (nowMs - quietSinceMs) / 1000) }),
    calls,
    ...(lastCall && { lastCall }),
    ...(exported && { exported }),
    ...(finished && { finished }),
    ...(stuck !== undefined && { stuck }),
    plan: body.plan,
    event: body.newest,
  };
}
