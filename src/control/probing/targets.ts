import { dialectOf } from '../../backends/register.ts';
import type { RemoteBackendSettings, Settings } from '../../config/schema/index.ts';
import type { ProbeTarget } from './prober.ts';

/** Whom to ask, and how: every endpoint of engines that run elsewhere. Hosts of ours tell of themselves. */
export function probeTargets(settings: Settings): ProbeTarget[] {
  return Object.entries(settings.backends).flatMap(([backend, of]) => {
    if (!('endpoints' in of) || of.probe.off) return [];
    return of.endpoints.map((endpoint) => ({
      backend,
      endpoint,
      url: new URL(of.probe.path ?? dialectOf(of.engine).healthPath, `${endpoint}/`).href,
      headers: headersOf(of.auth),
      tls: of.tls as ProbeTarget['tls'],
      everyMs: of.probe.every,
      healthy: of.probe.healthy,
      unhealthy: of.probe.unhealthy,
      pathGiven: of.probe.path !== undefined,
    }));
  });
}

/** How Armature proves itself to the engine. */
export function headersOf(auth: RemoteBackendSettings['auth']): Record<string, string> {
  if (!auth) return {};
  if ('bearer' in auth) return { authorization: `Bearer ${auth.bearer}` };
  if ('header' in auth) return { [auth.header.name]: auth.header.value };
  const credentials = Buffer.from(`${auth.basic.user}:${auth.basic.password}`).toString('base64');
  return { authorization: `Basic ${credentials}` };
}
