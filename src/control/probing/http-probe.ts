import type { Client } from 'undici';
import type { Timers } from '../../kernel/timers.ts';
import { clientOf, getOf, wordsOf } from '../http-get.ts';
import type { Probe } from './prober.ts';

/** What is read of an answer's body before the connection is closed, in bytes: its status is all that is wanted. */
const BODY_BYTES_MAX = 64 * 1024;

/** Probes by one GET on a connection of its own, so that an endpoint that takes no new connections is seen. */
export function httpProbe(timers: Timers): Probe {
  return async (target, withinMs) => {
    let client: Client | undefined;
    let late = false;
    const limit = timers.set(withinMs, () => {
      late = true;
      client?.destroy();
    });
    try {
      client = clientOf(target.url, target.tls, withinMs);
      const { statusCode, body } = await client.request(getOf(target.url, target.headers));
      await body.dump({ limit: BODY_BYTES_MAX });
      return { status: statusCode };
    } catch (error) {
      return { fault: late ? `no answer within ${withinMs} ms` : wordsOf(error) };
    } finally {
      timers.clear(limit);
      void client?.destroy();
    }
  };
}
