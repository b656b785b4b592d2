import { readFileSync } from 'node:fs';
import { Client } from 'undici';
import type { ProbeTarget } from './probing/prober.ts';

/** A connection to the origin of `url`, not made yet. Certificates are read now: they are replaced while we run. */
export function clientOf(url: string, tls: ProbeTarget['tls'], connectMs: number): Client {
  return new Client(new URL(url).origin, { allowH2: false, connect: { timeout: connectMs, ...tlsOf(tls) } });
}

/** What is asked by GET at `url`. */
export function getOf(url: string, headers: Record<string, string>) {
  const { pathname, search } = new URL(url);
  return { method: 'GET', path: pathname + search, headers } as const;
}

export function wordsOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}

/** Reads the files now: they are replaced while we run. */
export function tlsOf(tls: ProbeTarget['tls']): object {
  if (!tls) return {};
  const { ca, cert, key, serverName } = tls;
  return {
    ...(ca !== undefined && { ca: readFileSync(ca) }),
    ...(cert !== undefined && { cert: readFileSync(cert) }),
    ...(key !== undefined && { key: readFileSync(key) }),
    ...(serverName !== undefined && { servername: serverName }),
  };
}
