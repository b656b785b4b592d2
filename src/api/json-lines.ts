import type { Context } from 'hono';

const JSON_LINES_TYPE = 'application/jsonl; charset=utf-8';

const encoder = new TextEncoder();

/** Answers with what comes, one JSON object a line; a reader that leaves ends it. */
export function jsonLines(c: Context, items: AsyncGenerator<object>): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await items.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`));
    },
    async cancel() {
      await items.return(undefined);
    },
  });
  return c.body(body, 200, { 'content-type': JSON_LINES_TYPE });
}
