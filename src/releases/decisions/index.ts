import type { LedgerEvent } from '../../events/contracts.ts';
import type { EventDraft } from '../../events/event-maker.ts';
import type { Clock } from '../../kernel/clock.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import type { DocumentChange, Documents } from '../../store/contracts.ts';
import { OneAtATime } from '../registry/one-at-a-time.ts';

/** What a decision was taken on: something of the ledger, an address, or a file as it was then. */
export type DecisionEvidence =
  | { kind: 'id'; id: string }
  | { kind: 'url'; url: string }
  | {
      kind: 'file';
      name: string;
      /** Hexadecimal. */
      sha256: string;
      bytes: number;
      /** The file itself where it is JSON and small, such as what `armature bench --json` prints. */
      content?: unknown;
    };

/** Who chose which engine, hardware and version for what, why, and on which evidence. It does not change. */
export interface Decision {
  /** `dec_...` */
  id: string;
  engine: string;
  hardware: string;
  /** `NAME@NUMBER` of the registry, or a version in words. */
  version: string;
  /** `route:NAME`, `backend:NAME` or `model:NAME`. */
  for: string[];
  why: string;
  evidence: DecisionEvidence[];
  by: string;
  /** Who recorded it. */
  actor: string;
  /** ISO 8601, milliseconds, UTC. */
  at: string;
  /** The event that tells of it. */
  event: string;
}

export type NewDecision = Omit<Decision, 'id' | 'actor' | 'at' | 'event'>;

const DECISION_KIND = 'decision';
/** What the files of a decision hold, by their places among its evidence: large, and so no part of what is listed. */
const CONTENTS_KIND = 'decision-contents';
/** The ids of the newest decisions about one subject, newest first, by the subject: nobody reads all decisions for a few. */
const ABOUT_KIND = 'decisions-about';
export const ABOUT_MAX = 10;

export interface DecisionsOptions {
  documents: Documents;
  event: (draft: EventDraft) => LedgerEvent;
  clock: Clock;
  random: Random;
}

/** Decisions about stacks, each kept with its event. */
export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #makeId: (wallMs: number) => string;
  readonly #turns = new OneAtATime();

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#makeId = idMaker('dec', options.random);
  }

  /** `causes` are the events behind its evidence. Rejects with a StoreError, `conflict` where there are too many. */
  async add(decided: NewDecision, actor: string, causes: string[]): Promise<Decision> {
    const { documents, event: makeEvent, clock } = this.#options;
    const id = this.#makeId(clock.wall());
    const { engine, hardware, version, why, by } = decided;
    const event = makeEvent({
      type: 'stack-decided',
      subject: `decision:${id}`,
      actor,
      causes,
      data: {
        engine,
        hardware,
        version,
        chosenFor: decided.for,
        why,
        by,
        evidence: decided.evidence.map(told),
      },
    });
    const decision: Decision = { ...decided, id, actor, at: event.at, event: event.id };
    const body = { ...decision, evidence: decided.evidence.map(withoutContent) };
    const contents = contentsOf(decided.evidence);
    const changes: DocumentChange[] = [{ kind: DECISION_KIND, id, body, on: 0 }];
    if (contents) changes.push({ kind: CONTENTS_KIND, id, body: contents, on: 0 });
    // One after the other: two may be about one subject.
    await this.#turns.run('', async () => {
      for (const subject of subjectsOf(decision)) changes.push(await this.#listedAbout(subject, id));
      await documents.change(changes, [event]);
    });
    return decision;
  }

  async get(id: string): Promise<Decision | undefined> {
    const { documents } = this.#options;
    const decision = (await documents.get(DECISION_KIND, id))?.body as Decision | undefined;
    const contents = decision && ((await documents.get(CONTENTS_KIND, id))?.body as Contents | undefined);
    if (!decision || !contents) return decision;
    const evidence = decision.evidence.map((each, at) =>
      each.kind === 'file' && at in contents ? { ...each, content: contents[at] } : each,
    );
    return { ...decision, evidence };
  }

  /** Oldest first: ids sort by time. Only those that follow `after`; without what their files hold. */
  async list(limit: number, after?: string): Promise<Decision[]> {
    const documents = await this.#options.documents.list(DECISION_KIND, limit, after);
    return documents.map(({ body }) => body as Decision);
  }

  /** The newest decisions about any of these subjects, newest first; `limit` is ABOUT_MAX at most. */
  async about(subjects: readonly string[], limit: number): Promise<Decision[]> {
    const { documents } = this.#options;
    const lists = await Promise.all(subjects.map((subject) => documents.get(ABOUT_KIND, subject)));
    const ids = new Set(lists.flatMap((list) => (list?.body ?? []) as string[]));
    const newest = [...ids].sort().reverse().slice(0, limit);
    const found = await Promise.all(newest.map((id) => documents.get(DECISION_KIND, id)));
    return found.map((document) => document!.body as Decision);
  }

  async #listedAbout(subject: string, id: string): Promise<DocumentChange> {
    const list = await this.#options.documents.get(ABOUT_KIND, subject);
    const ids = [id, ...((list?.body ?? []) as string[])].slice(0, ABOUT_MAX);
    return { kind: ABOUT_KIND, id: subject, body: ids, on: list?.revision ?? 0 };
  }
}

/** What it is for, and the version that it chose. */
function subjectsOf(decision: Decision): Set<string> {
  return new Set([...decision.for, `version:${decision.version}`]);
}

type Contents = Record<number, unknown>;

function contentsOf(evidence: readonly DecisionEvidence[]): Contents | undefined {
  const entries = evidence.flatMap((each, at) =>
    each.kind === 'file' && each.content !== undefined ? [[at, each.content] as const] : [],
  );
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

function withoutContent(evidence: DecisionEvidence): DecisionEvidence {
  if (evidence.kind !== 'file') return evidence;
  const { content: _, ...rest } = evidence;
  return rest;
}

function told(evidence: DecisionEvidence): string {
  if (evidence.kind === 'id') return evidence.id;
  return evidence.kind === 'url' ? evidence.url : `${evidence.name} (sha256 ${evidence.sha256.slice(0, 12)})`;
}
