import { readFileSync } from 'node:fs';
import { Client } from 'undici';
import type { Timers } from '../../kernel/timers.ts';
import type { OpenPage, PageAnswer } from './scraper.ts';
import type { PageTarget } from './targets.ts';

/** The longest page that is read, in bytes; vLLM's with all its histograms have a tenth of it. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;

/** Reads pages over HTTP, by one GET after the other on one connection, which is made anew after a failure. */
export function httpPages(timers: Timers): OpenPage {
  return (target) => {
    let client: Client | undefined;
    const hangUp = () => {
      void client?.destroy();
      client = undefined;
    };
    return {
      async read(withinMs) {
        let late = false;
        const limit = timers.set(withinMs, () => {
          late = true;
          hangUp();
        });
        try {
          client ??= connect(target, withinMs);
          return await get(client, target);
        } catch (error) {
          hangUp();
          return { fault: late ? `no page within ${withinMs} ms` : wordsOf(error) };
        } finally {
          timers.clear(limit);
        }
      },
      close: hangUp,
    };
  };
}

function connect({ url, tls }: PageTarget, withinMs: number): Client {
  const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file));
  const secured = tls && {
    ca: read(tls.ca),
    cert: read(tls.cert),
    key: read(tls.key),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
  };
  return new Client(new URL(url).origin, { allowH2: false, connect: { timeout: withinMs, ...secured } });
}

async function get(client: Client, { url, headers }: PageTarget): Promise<PageAnswer> {
  const { pathname, search } = new URL(url);
  const path = pathname + search;
  const { statusCode, body } = await client.request({ method: 'GET', path, headers });
  if (statusCode !== 200) {
    await body.dump();
    return { status: statusCode };
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > PAGE_BYTES_MAX) throw new Error(`the page is longer than ${PAGE_BYTES_MAX} bytes`);
    pieces.push(piece);
  }
  return { page: Buffer.concat(pieces).toString('utf8') };
}

function wordsOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}
