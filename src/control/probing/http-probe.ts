import { readFileSync } from 'node:fs';
import { Client } from 'undici';
import type { Timers } from '../../kernel/timers.ts';
import type { Probe, ProbeTarget } from './prober.ts';

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
      const { origin, pathname, search } = new URL(target.url);
      client = new Client(origin, { allowH2: false, connect: { timeout: withinMs, ...tlsOf(target.tls) } });
      const path = pathname + search;
      const { statusCode, body } = await client.request({ method: 'GET', path, headers: target.headers });
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

/** Read at each probe: certificates are replaced while we run. */
function tlsOf(tls: ProbeTarget['tls']): object {
  if (!tls) return {};
  const { ca, cert, key, serverName } = tls;
  return {
    ...(ca !== undefined && { ca: readFileSync(ca) }),
    ...(cert !== undefined && { cert: readFileSync(cert) }),
    ...(key !== undefined && { key: readFileSync(key) }),
    ...(serverName !== undefined && { servername: serverName }),
  };
}

function wordsOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}
