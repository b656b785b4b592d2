import { ERRORS, type Failure } from '../../kernel/errors.ts';

/** OpenAI's error object; all four members are required by its clients. */
export function openaiErrorBody(failure: Failure): string {
  return JSON.stringify({
    error: {
      message: failure.message,
      type: ERRORS[failure.code].type,
      param: failure.param ?? null,
      code: failure.code,
    },
  });
}

/** An error inside a stream: an event of its own. The stream then ends without `[DONE]`. */
export function openaiErrorEvent(failure: Failure): string {
  return `data: ${openaiErrorBody(failure)}\n\n`;
}

/** True when an engine's error body already has the shape that OpenAI's clients read. */
export function isOpenaiError(body: Buffer): boolean {
  const error = parse(body)?.['error'];
  return (
    typeof error === 'object' &&
    error !== null &&
    'message' in error &&
    typeof error.message === 'string' &&
    'type' in error &&
    typeof error.type === 'string' &&
    'param' in error &&
    'code' in error
  );
}

/** What an engine said was wrong, found where engines put it; undefined when it said nothing readable. */
export function engineMessage(body: Buffer): string | undefined {
  const parsed = parse(body);
  if (!parsed) return undefined;
  for (const value of [parsed['error'], parsed['message'], parsed['detail'], parsed['errors']]) {
    if (typeof value === 'string' && value !== '') return value;
    if (typeof value === 'object' && value !== null) {
      const message = (value as Record<string, unknown>)['message'];
      return typeof message === 'string' && message !== '' ? message : JSON.stringify(value).slice(0, 2000);
    }
  }
  return undefined;
}

function parse(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // not JSON: the engine's words cannot be read
  }
}
