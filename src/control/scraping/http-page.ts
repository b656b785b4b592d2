import type { Client } from 'undici';
import type { Timers } from '../../kernel/timers.ts';
import { clientOf, getOf, wordsOf } from '../http-get.ts';
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
          client ??= clientOf(target.url, target.tls, withinMs);
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

async function get(client: Client, { url, headers }: PageTarget): Promise<PageAnswer> {
  const { statusCode, body } = await client.request(getOf(url, headers));
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
