import { readFileSync } from 'node:fs';
import type { BackendSettings } from '../../config/schema/index.ts';

/** Names and values by which the gateway proves itself to a backend's engine. */
export function authHeaders(backend: BackendSettings): string[] {
  const auth = 'auth' in backend ? backend.auth : undefined;
  if (!auth) return [];
  if ('bearer' in auth) return ['authorization', `Bearer ${auth.bearer}`];
  if ('header' in auth) return [auth.header.name.toLowerCase(), auth.header.value];
  const pair = Buffer.from(`${auth.basic.user}:${auth.basic.password}`).toString('base64');
  return ['authorization', `Basic ${pair}`];
}

/** The texts of a backend's certificates. */
export function readTls(tls: {
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  serverName?: string | undefined;
}) {
  let unreadable: string | undefined;
  const read = (file: string | undefined) => {
    try {
      return file === undefined ? undefined : readFileSync(file, 'utf8');
    } catch {
      unreadable = file; // it was there when the configuration was checked; requests to the backend are told
      return undefined;
    }
  };
  const texts = { ca: read(tls.ca), cert: read(tls.cert), key: read(tls.key) };
  return { ...texts, serverName: tls.serverName, unreadable };
}
