import type { Step } from '../../events/contracts.ts';
import { ERRORS, type ErrorCode } from '../../kernel/errors.ts';
import type { SimulatedCaller } from '../caller.ts';

/** A timer is set for a whole millisecond at least, and fires no earlier than it says. */
const TIMER_MS = 2;

/** Every caller gets exactly one answer, and has it (a stream: its first content) by its deadline. */
export function checkAnswers(
  callers: readonly SimulatedCaller[],
  deadlineMs: (caller: SimulatedCaller) => number,
): string[] {
  const wrong: string[] = [];
  for (const [index, caller] of callers.entries()) {
    const who = nameOf(caller, index);
    if (caller.left) continue;
    if (caller.ended !== 1 || caller.begun !== 1) {
      wrong.push(`${who} was answered ${caller.begun} times, and its answer ended ${caller.ended} times`);
      continue;
    }
    const { startedAt, endedAt, firstAt, status, broken } = caller;
    const began = caller.arrival.stream && status === 200 ? (firstAt ?? endedAt) : endedAt;
    const tookMs = began - startedAt;
    const dueMs = deadlineMs(caller);
    if (!broken && tookMs > dueMs + TIMER_MS) {
      wrong.push(
        `${who} had to wait ${tookMs.toFixed(1)} ms, and its deadline was ${dueMs} ms (${status} ${caller.code ?? ''})`,
      );
    }
  }
  return wrong;
}

/** Every refusal and failure names its error, and says when to come again where that is due. */
export function checkRefusals(callers: readonly SimulatedCaller[]): string[] {
  const wrong: string[] = [];
  for (const [index, caller] of callers.entries()) {
    if (caller.left || caller.status < 400) continue;
    const { status, code, retryAfterSeconds: again } = caller;
    const who = `${nameOf(caller, index)}, answered ${status}`;
    if (code === undefined) {
      if (status >= 500 || status === 429) wrong.push(`${who}, was not told why`);
    } else if (!Object.hasOwn(ERRORS, code)) wrong.push(`${who}, was told the unknown code ${code}`);
    else if (ERRORS[code as ErrorCode].status !== status && code !== 'not_found') {
      wrong.push(`${who}, was told ${code}, which is ${ERRORS[code as ErrorCode].status}`);
    }
    if (
      (status === 429 || status === 503) &&
      !(again !== undefined && Number.isInteger(again) && again >= 1)
    ) {
      wrong.push(`${who}, was not told when to come again: ${again}`);
    }
  }
  return wrong;
}

/** Every request that was not answered in full has steps that tell why, each in words. */
export function checkReasons(
  records: ReadonlyMap<string, { outcome: string; steps: readonly Step[] }>,
  callers: readonly SimulatedCaller[],
  hasWords: (code: string) => boolean,
): string[] {
  const wrong: string[] = [];
  for (const [index, caller] of callers.entries()) {
    if (caller.left || (caller.status === 200 && !caller.broken && caller.degraded === undefined)) continue;
    const record = records.get(caller.requestId);
    const who = `${nameOf(caller, index)}, answered ${caller.status} ${caller.code ?? caller.degraded ?? ''}`;
    if (!record) {
      wrong.push(`${who}, has no record`);
      continue;
    }
    const told = record.steps.filter(({ what, code }) => what !== 'answer' && code !== 'admitted');
    const deadline = record.steps.some(({ code }) => code === 'deadline-passed');
    const atOnce = caller.code !== undefined && AT_ONCE.has(caller.code);
    if (told.length === 0 && !deadline && !atOnce) wrong.push(`${who}, has no step that tells why`);
    for (const { code } of record.steps)
      if (!hasWords(code)) wrong.push(`${who}: there are no words for the code ${code}`);
  }
  return wrong;
}

/** What is told at once, by the error alone. */
const AT_ONCE: ReadonlySet<string> = new Set([
  'invalid_request',
  'unauthorized',
  'forbidden',
  'unknown_route',
  'not_found',
  'body_too_large',
  'draining',
]);

function nameOf({ arrival, startedAt, requestId }: SimulatedCaller, index: number): string {
  const { route, tenant, priority, stream } = arrival;
  return `request ${index} (${requestId}, ${route}, ${tenant ?? 'open'}, ${priority ?? 'default'}${stream ? ', stream' : ''}, at ${startedAt.toFixed(1)} ms)`;
}
