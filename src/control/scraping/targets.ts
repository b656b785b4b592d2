import type { GaugeNames } from '../../backends/contracts.ts';
import { dialectOf, gaugeNamesOf } from '../../backends/register.ts';
import type { BackendSettings, Settings } from '../../config/schema/index.ts';
import { keyOf, type ProbeTarget } from '../probing/prober.ts';
import { headersOf } from '../probing/targets.ts';

/** An endpoint that a page of metrics tells of. */
export interface PageSubject {
  /** `BACKEND|ADDRESS` */
  key: string;
  names: GaugeNames;
  model: string;
  /** Endpoints that the figures are of, all together; this one is taken to have its equal part. */
  sharedBy: number;
}

/** A page of metrics. Everybody whom it tells of is read from one scrape. */
export interface PageTarget {
  url: string;
  headers: Record<string, string>;
  tls: ProbeTarget['tls'];
  /** The page was written down; else it is where the engine usually has it, and its absence is no news. */
  written: boolean;
  subjects: PageSubject[];
}

type Page = Omit<PageTarget, 'subjects'> & { subject: PageSubject };

/**
 * The pages that tell how busy endpoints are: those under `gauges`, and for other endpoints of a named engine, and of hosts
 * of ours, the usual one. `endpoints`: where each backend is reached now.
 */
export function pageTargets(settings: Settings, endpoints: Record<string, readonly string[]>): PageTarget[] {
  const targets = new Map<string, PageTarget>();
  for (const [name, backend] of Object.entries(settings.backends)) {
    for (const { subject, ...page } of pagesOf(name, backend, endpoints[name] ?? [])) {
      const { written, ...how } = page;
      const same = JSON.stringify(how);
      const target = targets.get(same) ?? { ...page, subjects: [] };
      target.written ||= written;
      target.subjects.push(subject);
      targets.set(same, target);
    }
  }
  return [...targets.values()];
}

function pagesOf(name: string, backend: BackendSettings, addresses: readonly string[]): Page[] {
  const names = gaugeNamesOf(backend.engine);
  return addresses.flatMap((endpoint, at): Page[] => {
    const found = writtenPage(backend, addresses, at) ?? usualPage(backend, endpoint);
    if (!found) return [];
    const { url, written, sharedBy } = found;
    // A key goes to whom it is for, and to nobody else that a page may lie at.
    const own = new URL(url).origin === new URL(endpoint).origin;
    const headers = own && 'auth' in backend ? headersOf(backend.auth) : {};
    const tls =
      'tls' in backend && url.startsWith('https:') ? (backend.tls as ProbeTarget['tls']) : undefined;
    const subject = { key: keyOf({ backend: name, endpoint }), names, model: backend.model, sharedBy };
    return [{ url, headers, tls, written, subject }];
  });
}

interface FoundPage {
  url: string;
  written: boolean;
  sharedBy: number;
}

/**
 * Of a list, the page in the endpoint's place. One page for several endpoints that lies at one of them says where each has
 * its own, since they are alike; one that lies elsewhere tells of them all together.
 */
function writtenPage(
  backend: BackendSettings,
  addresses: readonly string[],
  at: number,
): FoundPage | undefined {
  const written = 'gauges' in backend ? backend.gauges : undefined;
  if (!written) return undefined;
  if (written.length > 1) return { url: written[at]!, written: true, sharedBy: 1 };
  const url = written[0]!;
  const { origin, pathname, search } = new URL(url);
  const origins = addresses.map((address) => new URL(address).origin);
  if (!origins.includes(origin)) return { url, written: true, sharedBy: addresses.length };
  const own = origins[at]!;
  const sharedBy = origins.filter((each) => each === own).length;
  return { url: `${own}${pathname}${search}`, written: own === origin, sharedBy };
}

function usualPage(backend: BackendSettings, endpoint: string): FoundPage | undefined {
  const path = dialectOf(backend.engine).gaugesPath;
  if (path === undefined) return undefined;
  return { url: new URL(path, `${endpoint}/`).href, written: false, sharedBy: 1 };
}
