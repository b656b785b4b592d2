import { isUtf8 } from 'node:buffer';
import type { LineAnswer } from './asking.ts';

/** Lines of output and error files, as OpenAI has them. `id` is a request's, and unlike any other. */

/** A line that an answer came for, be it an error. `id` is that of the request: `armature why` takes it. */
export function answeredText(id: string, customId: string, { status, body }: LineAnswer): string {
  const head = `{"id":${JSON.stringify(`batch_${id}`)},"custom_id":${JSON.stringify(customId)},"response":{"status_code":${status},"request_id":${JSON.stringify(id)},"body":`;
  return `${head}${bodyText(body)}},"error":null}`;
}

/** A line that no answer will come for. */
export function unansweredText(
  id: string,
  customId: string,
  error: { code: string; message: string },
): string {
  return JSON.stringify({ id, custom_id: customId, response: null, error });
}

/** The bytes as they came, on one line: ends of line in JSON stand between values only. What is no JSON becomes a text. */
function bodyText(body: Buffer): string {
  const text = body.toString('utf8').replace(/^\uFEFF/, '');
  try {
    if (isUtf8(body)) {
      JSON.parse(text);
      return /[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ').trim() : text;
    }
  } catch {
    // it is told as a text
  }
  return JSON.stringify(text);
}
