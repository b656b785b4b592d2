import { type Exchange, JSON_TYPE, type OwnAnswer, type Path } from '../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../kernel/errors.ts';
import { StoreError } from '../store/contracts.ts';

/** What the endpoints of files and batches answer, and how they tell what is wrong. */

export function answerJson(path: Path, x: Exchange, value: unknown): void {
  if (x.over) return;
  path.answer(x, jsonAnswer(value), 'ok');
}

function jsonAnswer(value: unknown): OwnAnswer {
  return { status: 200, headers: [...JSON_TYPE], body: JSON.stringify(value) };
}

/** The same for what never was and for what is another tenant's. */
export function noSuch(what: string, id: string, param?: string): Failure {
  return {
    code: 'not_found',
    message: `No such ${what}: ${id.slice(0, 100)}.`,
    phase: 'before-queue',
    ...(param === undefined ? {} : { param }),
    shouldRetry: false,
  };
}

export function nothingAt(x: Exchange): Failure {
  const { method } = x.caller;
  return {
    code: 'not_found',
    message: `There is nothing at ${method} ${x.stateful!.path.slice(0, 200)}.`,
    phase: 'before-queue',
  };
}

export function wrongMethod(x: Exchange, allow: string): Failure {
  return {
    code: 'not_found',
    message: `${x.caller.method} is not allowed here; use ${allow}.`,
    phase: 'before-queue',
    status: 405,
    allow,
  };
}

/** The store or the disk could not do it: it is no fault of the caller's, and may go well later. */
export function unstorable(error: unknown): Failure {
  const full = isFull(error);
  return {
    code: 'overloaded',
    message: full
      ? 'The disk is full: nothing more can be kept now.'
      : 'What is kept cannot be read or written now.',
    phase: 'before-queue',
    retryAfterSeconds: full ? 30 : 2,
  };
}

function isFull(error: unknown): boolean {
  if (error instanceof StoreError) return error.trouble === 'full';
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG';
}

/** What a list is asked for; a failure where that cannot be read. */
export interface ListQuery {
  limit: number;
  after: string | undefined;
  order: 'asc' | 'desc';
  purpose: string | undefined;
}

export function readListQuery(
  target: string,
  { limit, limitMax }: { limit: number; limitMax: number },
): ListQuery | Failure {
  const mark = target.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1));
  const asked = query.get('limit');
  if (asked !== null && !(/^\d{1,9}$/.test(asked) && Number(asked) >= 1 && Number(asked) <= limitMax))
    return invalidRequest(`Expected 'limit' to be a whole number from 1 to ${limitMax}.`, 'limit');
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc')
    return invalidRequest("Expected 'order' to be asc or desc.", 'order');
  return {
    limit: asked === null ? limit : Number(asked),
    after: query.get('after') ?? undefined,
    order,
    purpose: query.get('purpose') ?? undefined,
  };
}

export function listObject(objects: readonly { id: string }[], more: boolean): unknown {
  return {
    object: 'list',
    data: objects,
    first_id: objects[0]?.id ?? null,
    last_id: objects.at(-1)?.id ?? null,
    has_more: more,
  };
}

/** Seconds since the epoch, as OpenAI's objects have them. */
export function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1000);
}

/** `{anchor: 'created_at', seconds}`: for how long something is kept. */
export function readExpiry(anchor: unknown, after: unknown, param: string): { keptMs: number } | Failure {
  if (anchor !== 'created_at') return invalidRequest(`Expected '${param}.anchor' to be created_at.`, param);
  const given = Number(after);
  if (!Number.isInteger(given) || given < EXPIRY_SECONDS_MIN || given > EXPIRY_SECONDS_MAX)
    return invalidRequest(
      `Expected '${param}.seconds' to be a whole number from ${EXPIRY_SECONDS_MIN} to ${EXPIRY_SECONDS_MAX}.`,
      param,
    );
  return { keptMs: given * 1000 };
}

const EXPIRY_SECONDS_MIN = 3600;
const EXPIRY_SECONDS_MAX = 2_592_000;
