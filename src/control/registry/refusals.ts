import { ApiFault } from '../../api/contracts.ts';
import { Refused } from '../../releases/registry/refused.ts';
import { StoreError } from '../../store/contracts.ts';

const STATUS = { invalid_request: 400, not_found: 404, conflict: 409 } as const;

/** What the registry refuses, as the API tells it; whatever else is wrong stays what it is. */
function apiFault(error: unknown): unknown {
  if (error instanceof Refused)
    return new ApiFault(STATUS[error.code], error.code, error.message, error.faults);
  if (error instanceof StoreError && error.trouble === 'conflict')
    return new ApiFault(409, 'conflict', error.message);
  return error;
}

export async function orRefused<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw apiFault(error);
  }
}

/** Steps as they are told: what goes wrong on the way is the last line, since the answer has begun. */
export async function* toldSteps(steps: AsyncGenerator<object>): AsyncGenerator<object> {
  try {
    yield* steps;
  } catch (error) {
    const { message, code, faults } = apiFault(error) as Error & { code?: string; faults?: string[] };
    yield { type: 'failed', code: code ?? 'store_unavailable', message, ...(faults && { faults }) };
  }
}
