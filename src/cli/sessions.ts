import { existsSync } from 'node:fs';
import { inFull, pageOfSessions, type SessionView, type SessionViewInFull } from '../store/session-view.ts';
import type { SessionsStore } from '../store/sessions.ts';
import { sessionsFile, sessionsIn } from '../store/sqlite/sessions.ts';
import { type ActionGroup, type CommonOptions, defineAction, failed, wholeNumber } from './command.ts';
import { table } from './output.ts';
import { findRunning, NotRunning } from './running.ts';

/** What can be done with sessions, by a running Armature or, where none runs, in their file itself. */
interface SessionDesk {
  page(limit: number, after: string | undefined, tenant: string | undefined): Promise<Page>;
  /** Rejects where there is none. */
  show(id: string): Promise<SessionViewInFull>;
  remove(id: string): Promise<void>;
}

interface Page {
  data: SessionView[];
  next: string | null;
}

const PAGE = 1000;
const ID = { name: 'ID', summary: "A conversation's, or the first response's of a tree." };
const tenant = { value: 'TENANT', summary: 'Only those of this tenant.' } as const;

const ls = defineAction({
  summary: 'list what is kept, last continued first',
  options: {
    tenant,
    limit: { value: 'N', summary: 'At most so many.', parse: wholeNumber(1) },
  },
  async run({ options, common, output }) {
    const sessions: SessionView[] = [];
    const max = options.limit ?? Number.POSITIVE_INFINITY;
    await atDesk(common, async (desk) => {
      for await (const session of all(desk, options.tenant)) {
        if (sessions.push(session) >= max) return;
      }
    });
    if (common.json) output.json({ sessions });
    else if (sessions.length === 0) output.note('No responses or conversations are kept.');
    else {
      const rows = sessions.map(({ id, tenant, kind, turns, updatedAt }) => [
        id,
        tenant,
        kind,
        turns,
        updatedAt,
      ]);
      output.print(table(['id', 'tenant', 'kind', 'turns', 'updated'], rows));
    }
  },
});

const show = defineAction({
  summary: 'show the turns of one, and what answered each',
  arguments: [ID],
  async run({ args: [id = ''], common, output }) {
    const session = await atDesk(common, (desk) => desk.show(id));
    if (common.json) {
      output.json(session);
      return;
    }
    output.print(`${session.kind} ${session.id} of tenant ${session.tenant}, ${session.turns} turns`);
    const rows = session.responses.map((each) => [
      each.id,
      each.at,
      each.status,
      each.backend || '-',
      each.model || '-',
      each.request,
    ]);
    if (rows.length > 0)
      output.print(table(['response', 'at', 'status', 'backend', 'model', 'request'], rows));
  },
});

const rm = defineAction({
  summary: 'remove sessions, with every response of them',
  arguments: [{ ...ID, many: true }],
  async run({ args, common, output }) {
    await atDesk(common, async (desk) => {
      for (const id of args) await desk.remove(id);
    });
    if (common.json) output.json({ removed: args });
    else for (const id of args) output.print(`${id} is removed`);
  },
});

const exportAll = defineAction({
  summary: 'print sessions in full, one JSON object a line',
  arguments: [{ ...ID, many: true, optional: true }],
  options: { tenant },
  async run({ args, options, common, output }) {
    await atDesk(common, async (desk) => {
      for (const id of args) output.json(await desk.show(id));
      if (args.length > 0) return;
      for await (const { id } of all(desk, options.tenant)) output.json(await desk.show(id));
    });
  },
});

export const command: ActionGroup = { actions: { ls, show, rm, export: exportAll }, defaultAction: 'ls' };

async function* all(desk: SessionDesk, tenant: string | undefined): AsyncGenerator<SessionView> {
  for (let after: string | undefined; ; ) {
    const { data, next } = await desk.page(PAGE, after, tenant);
    yield* data;
    if (next === null) return;
    after = next;
  }
}

async function atDesk<Result>(
  common: CommonOptions,
  work: (desk: SessionDesk) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(await deskOfRunning(common));
  } catch (error) {
    const elsewhere = common.admin !== undefined || (!common.dataGiven && process.env.ARMATURE_ADMIN);
    if (!(error instanceof NotRunning) || elsewhere || !existsSync(sessionsFile(common.data))) throw error;
    const store = sessionsIn(common.data);
    try {
      return await work(deskOf(store));
    } finally {
      await store.close();
    }
  }
}

async function deskOfRunning(common: CommonOptions): Promise<SessionDesk> {
  const running = await findRunning(common);
  const one = (id: string) => `/api/v1/sessions/${encodeURIComponent(id)}`;
  return {
    page: (limit, after, tenant) => {
      const asked = new URLSearchParams({ limit: String(limit) });
      if (after !== undefined) asked.set('after', after);
      if (tenant !== undefined) asked.set('tenant', tenant);
      return running.call(`/api/v1/sessions?${asked}`);
    },
    show: (id) => running.call(one(id)),
    async remove(id) {
      await running.call(one(id), { method: 'DELETE' });
    },
  };
}

/** The file takes several who read and write it: nothing is in the way of an Armature that starts meanwhile. */
function deskOf(store: SessionsStore): SessionDesk {
  const none = (id: string) => failed(`there is no session '${id}'`);
  return {
    async page(limit, after, tenant) {
      const page = await pageOfSessions(store, { limit, after, tenant });
      if (!page) throw none(after!);
      return page;
    },
    async show(id) {
      const found = await store.show({ id });
      if (!found) throw none(id);
      return inFull(found);
    },
    async remove(id) {
      if (!(await store.remove({ id }))) throw none(id);
    },
  };
}
