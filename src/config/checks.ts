import { hostAndPort, isLoopback } from '../kernel/listen-address.ts';
import { checkAnswers } from './answer-checks.ts';
import { checkCopies } from './compare-checks.ts';
import { checkContexts } from './context-checks.ts';
import { checkDrift } from './drift-checks.ts';
import type { Notice } from './faults.ts';
import { checkModels } from './model-checks.ts';
import { nearest } from './nearest.ts';
import { checkParity } from './parity-checks.ts';
import { checkPipelines } from './pipeline-checks.ts';
import type { Path } from './places.ts';
import { checkPrepare } from './prepare-checks.ts';
import { UNRESOLVED } from './references.ts';
import { checkRegistry } from './registry-checks.ts';
import { checkReleases } from './release-checks.ts';
import { checkUse } from './route-checks.ts';
import { OPENAI_ENGINES, type RemoteBackendSettings, type Settings } from './schema/index.ts';
import { at, isMap, select } from './shape.ts';
import type { Draft } from './sources.ts';
import { checkTiers } from './tier-checks.ts';

export type NoticeDraft = Pick<Notice, 'code' | 'message'> & { path: Path };

/** Settings without what is faulty in itself, and the paths of what was left out. */
export interface Sound {
  settings: Settings;
  leftOut: ReadonlySet<string>;
}

type Section = 'backends' | 'routes' | 'models' | 'pipelines';

const HINTS_MAX = 100;

/** What is found by checking parts of a configuration against one another. */
export class Findings {
  readonly faults: Draft[] = [];
  readonly notices: NoticeDraft[] = [];
  /** Every name under a section, also of entries that are faulty themselves. */
  readonly names: Record<Section, readonly string[]>;
  readonly leftOut: ReadonlySet<string>;

  constructor(document: Record<string, unknown>, leftOut: ReadonlySet<string>) {
    const namesOf = (section: string): string[] => {
      const map = at(document, section);
      return isMap(map) ? Object.keys(map) : [];
    };
    this.names = {
      backends: namesOf('backends'),
      routes: namesOf('routes'),
      models: namesOf('models'),
      pipelines: namesOf('pipelines'),
    };
    this.leftOut = leftOut;
  }

  fault(code: Draft['code'], path: Path, message: string, more: Partial<Draft> = {}): void {
    this.faults.push({ code, path, at: 'value', message, ...more });
  }

  /** Refuses a name that is not among those it may be. `what` is such as `backend`. */
  known(name: string, names: readonly string[], what: string, path: Path): void {
    if (names.includes(name)) return;
    // Looking for what was meant takes a while where names are many; of many faults the first are looked at.
    const like = this.faults.length < HINTS_MAX ? nearest(name, names) : undefined;
    const some = names.slice(0, 12).join(', ') + (names.length > 12 ? ', ...' : '');
    const hint = like
      ? `did you mean "${like}"?`
      : names.length > 0
        ? `there are: ${some}`
        : `there is no ${what} at all`;
    this.fault('unknown-name', path, `there is no ${what} "${name}"`, {
      expected: like ?? `the name of a ${what}`,
      found: JSON.stringify(name),
      hint,
    });
  }
}

/**
 * Checks what parts of a configuration say about one another. `document` is the configuration as it was written, with
 * what is faulty in itself.
 */
export function crossCheck({ settings, leftOut }: Sound, document: Record<string, unknown>): Findings {
  const findings = new Findings(document, leftOut);
  checkNames(document, findings);
  checkListeners(settings, findings);
  for (const [name, backend] of Object.entries(settings.backends)) {
    if ('endpoints' in backend) checkRemote(backend, ['backends', name], findings);
    const { adaptive, firstToken } = backend.limits;
    if (adaptive === 'target' && firstToken === undefined) {
      const message = 'a limit that goes by a target needs one';
      const hint = 'give limits.firstToken, such as 500ms, or leave adaptive away';
      findings.fault('contradiction', ['backends', name, 'limits', 'adaptive'], message, { hint });
    }
  }
  checkRoutes(settings, findings);
  checkAnswers(settings, findings);
  checkUse(settings, findings);
  checkReleases(settings, findings);
  checkParity(settings, findings);
  checkDrift(settings, findings);
  checkTiers(settings, findings);
  checkTenants(settings, findings);
  checkModels(settings, findings);
  checkPrepare(settings, findings);
  checkPipelines(settings, findings);
  checkContexts(settings, findings);
  checkCopies(settings, findings);
  checkRegistry(settings, findings);
  return findings;
}

/** Where names of other parts stand, and of which. */
export const NAMES: readonly { pattern: string; what: string; sections: readonly Section[] }[] = [
  { pattern: 'routes.*.targets.*.backend', what: 'backend', sections: ['backends'] },
  { pattern: 'routes.*.ladder.*.backend', what: 'backend', sections: ['backends'] },
  { pattern: 'routes.*.shadow.*.backend', what: 'backend', sections: ['backends'] },
  { pattern: 'routes.*.shadow.*.compare.route', what: 'route', sections: ['routes'] },
  { pattern: 'routes.*.release.compare.route', what: 'route', sections: ['routes'] },
  { pattern: 'routes.*.release.baseline', what: 'backend', sections: ['backends'] },
  { pattern: 'routes.*.parity.reference', what: 'backend', sections: ['backends'] },
  { pattern: 'routes.*.context.middle.summarise', what: 'route', sections: ['routes'] },
  { pattern: 'backends.*.context.tokenizer.model', what: 'model', sections: ['models'] },
  { pattern: 'tenants.*.routes.*', what: 'route or pipeline', sections: ['routes', 'pipelines'] },
  { pattern: 'pipelines.*.stages.*.route', what: 'route', sections: ['routes'] },
  { pattern: 'pipelines.*.stages.*.onFailure.route', what: 'route', sections: ['routes'] },
];

function checkNames(document: Record<string, unknown>, findings: Findings): void {
  for (const { pattern, what, sections } of NAMES) {
    const names = sections.flatMap((section) => findings.names[section]);
    for (const { path, value } of select(document, pattern.split('.'))) {
      if (typeof value === 'string' && value !== UNRESOLVED) findings.known(value, names, what, path);
    }
  }
  const callable = [...findings.names.routes, ...findings.names.pipelines];
  for (const { path } of select(document, ['tenants', '*', 'limits', 'routes', '*'])) {
    findings.known(String(path.at(-1)), callable, 'route or pipeline', path);
  }
  for (const { path, value } of select(document, ['backends', '*'])) {
    const model = at(value, 'model');
    if (at(value, 'engine') !== 'local' || typeof model !== 'string' || model === UNRESOLVED) continue;
    findings.known(model, findings.names.models, 'model', [...path, 'model']);
  }
}

/** Whether what listens at this `HOST:PORT` is reached from this machine alone. */
export function isKeptToLoopback(listen: string): boolean {
  return isLoopback(hostAndPort(listen).host);
}

function checkListeners({ gateway, admin, tenants }: Settings, findings: Findings): void {
  if (!isKeptToLoopback(gateway.listen) && tenants === undefined && !findings.leftOut.has('tenants')) {
    const message = `${gateway.listen} can be reached from other machines, and without tenants anybody may call`;
    const hint = 'add tenants with keys, or listen on 127.0.0.1';
    findings.fault('contradiction', ['gateway', 'listen'], message, {
      expected: 'a loopback address, or tenants',
      found: gateway.listen,
      hint,
    });
  }
  if (!isKeptToLoopback(admin.listen) && admin.tokens.length === 0 && !findings.leftOut.has('admin.tokens')) {
    const message = `${admin.listen} can be reached from other machines, and without admin.tokens anybody may change everything`;
    const hint = 'add admin.tokens, or listen on 127.0.0.1';
    findings.fault('contradiction', ['admin', 'listen'], message, {
      expected: 'a loopback address, or admin.tokens',
      found: admin.listen,
      hint,
    });
  }
  if (gateway.listen === admin.listen && !gateway.listen.endsWith(':0')) {
    findings.fault(
      'contradiction',
      ['admin', 'listen'],
      `gateway.listen and admin.listen are both ${admin.listen}`,
    );
  }
  const floors = Object.values(gateway.floors).reduce((sum, share) => sum + share, 0);
  if (floors > 1 + 1e-9) {
    const message = `the floors together are ${Number(floors.toFixed(4))}: more than there is to share`;
    findings.fault('contradiction', ['gateway', 'floors'], message, {
      expected: 'shares that sum to 1 at most',
      found: String(Number(floors.toFixed(4))),
    });
  }
  if (gateway.bodyBytesMax > gateway.bufferBytesMax) {
    const message = `gateway.bodyBytesMax (${gateway.bodyBytesMax} bytes) is above gateway.bufferBytesMax (${gateway.bufferBytesMax} bytes), which bounds all bodies together`;
    findings.fault('contradiction', ['gateway', 'bodyBytesMax'], message);
  }
}

function checkRemote(backend: RemoteBackendSettings, path: Path, findings: Findings): void {
  const openai = (OPENAI_ENGINES as readonly string[]).includes(backend.engine);
  const seen = new Set<string>();
  for (const [index, endpoint] of backend.endpoints.entries()) {
    const where = [...path, 'endpoints', index];
    if (seen.has(endpoint)) findings.fault('contradiction', where, `${endpoint} stands in the list twice`);
    seen.add(endpoint);
    const { pathname } = new URL(endpoint);
    if (openai && !/\/v\d[a-z0-9]*(\/|$)/.test(pathname)) {
      const message = `the address of an engine with OpenAI's API usually ends with /v1: requests go to ${endpoint}/chat/completions`;
      findings.notices.push({ code: 'looks-wrong', path: where, message });
    } else if (!openai && /\/v2$/.test(pathname)) {
      const message = `the address of an OIP engine is written without /v2: requests go to ${endpoint}/v2/models/...`;
      findings.notices.push({ code: 'looks-wrong', path: where, message });
    }
  }
  const { gauges, endpoints, tls } = backend;
  if (gauges && gauges.length > 1 && gauges.length !== endpoints.length) {
    const message = `${gauges.length} gauges for ${endpoints.length} endpoints: expected one for all, or one for each in the same order`;
    findings.fault('contradiction', [...path, 'gauges'], message, {
      expected: `1 or ${endpoints.length} addresses`,
      found: `${gauges.length} addresses`,
    });
  }
  if (tls && (tls.cert === undefined) !== (tls.key === undefined)) {
    const lacking = tls.cert === undefined ? 'cert' : 'key';
    findings.fault(
      'contradiction',
      [...path, 'tls'],
      `a client certificate needs cert and key; ${lacking} is missing`,
    );
  }
}

function checkRoutes({ routes, backends }: Settings, findings: Findings): void {
  for (const [name, route] of Object.entries(routes)) {
    const path = ['routes', name];
    if (findings.names.pipelines.includes(name)) {
      const hint = 'callers name either as model: rename one';
      findings.fault('contradiction', path, `a pipeline has the name "${name}" too`, { at: 'key', hint });
    }
    const seen = new Set<string>();
    for (const [index, { backend }] of route.targets.entries()) {
      if (seen.has(backend)) {
        const where = [...path, 'targets', index, 'backend'];
        findings.fault('contradiction', where, `the backend "${backend}" is a target twice`, {
          hint: 'give one target the whole weight',
        });
      }
      seen.add(backend);
    }
    checkShadows(name, route, backends, findings);
    checkHedge(name, route, backends, findings);
    if (route.targets.every(({ weight }) => weight === 0)) {
      findings.fault(
        'contradiction',
        [...path, 'targets'],
        'all weights are 0, so that no target is ever used',
        {
          expected: 'a weight above 0',
          found: 'weights of 0',
        },
      );
    }
  }
}

/** A shadow hears the same protocol as a target, and is none itself. */
function checkShadows(
  name: string,
  { shadow, targets }: Settings['routes'][string],
  backends: Settings['backends'],
  findings: Findings,
): void {
  const spoken = new Set(targets.flatMap(({ backend }) => protocolsOf(backends[backend])));
  const seen = new Set<string>();
  for (const [index, { backend }] of shadow.entries()) {
    const path = ['routes', name, 'shadow', index, 'backend'];
    if (seen.has(backend))
      findings.fault('contradiction', path, `the backend "${backend}" is a shadow twice`);
    seen.add(backend);
    const speaks = protocolsOf(backends[backend]);
    if (speaks.length > 0 && spoken.size > 0 && !speaks.some((protocol) => spoken.has(protocol))) {
      const message = `the shadow "${backend}" speaks another protocol than the targets, so that no copy could be sent`;
      findings.fault('contradiction', path, message);
    }
    if (targets.some((target) => target.backend === backend && target.weight > 0)) {
      const message = `"${backend}" is a target as well: copies take its places while nobody waits for them`;
      findings.notices.push({ code: 'looks-wrong', path, message });
    }
  }
}

function checkHedge(
  name: string,
  { hedge, targets }: Settings['routes'][string],
  backends: Settings['backends'],
  findings: Findings,
): void {
  if (!hedge) return;
  let endpoints = 0;
  for (const { backend, weight } of targets) {
    const settings = backends[backend];
    if (!settings) return; // it has a fault of its own
    if (weight > 0) endpoints += 'endpoints' in settings ? settings.endpoints.length : 1;
  }
  if (endpoints > 1) return;
  const message = 'its targets have one endpoint together, so that there is nowhere to send a second attempt';
  findings.notices.push({ code: 'looks-wrong', path: ['routes', name, 'hedge'], message });
}

/** None where the backend has a fault of its own. */
export function protocolsOf(backend: Settings['backends'][string] | undefined): ('openai' | 'oip')[] {
  if (!backend) return [];
  if (!('endpoints' in backend)) return ['openai', 'oip'];
  return (OPENAI_ENGINES as readonly string[]).includes(backend.engine) ? ['openai'] : ['oip'];
}

function checkTenants({ tenants, admin }: Settings, findings: Findings): void {
  if (tenants && Object.keys(tenants).length === 0) {
    const message = 'there is no tenant, so that nobody may call';
    findings.notices.push({ code: 'looks-wrong', path: ['tenants'], message });
  }
  const owners = new Map<string, string>();
  for (const [name, tenant] of Object.entries(tenants ?? {})) {
    for (const route of Object.keys(tenant.limits.routes)) {
      if (tenant.routes === undefined || tenant.routes.includes(route)) continue;
      const message = `the tenant may not call "${route}", so that there is nothing to limit`;
      const path = ['tenants', name, 'limits', 'routes', route];
      findings.notices.push({ code: 'looks-wrong', path, message });
    }
    for (const [index, { hash }] of tenant.keys.entries()) {
      const owner = owners.get(hash);
      if (owner !== undefined) {
        findings.fault(
          'contradiction',
          ['tenants', name, 'keys', index, 'hash'],
          `the same key belongs to tenant "${owner}"`,
        );
      }
      owners.set(hash, name);
    }
  }
  const names = new Set<string>();
  for (const [index, token] of admin.tokens.entries()) {
    if (names.has(token.name))
      findings.fault(
        'contradiction',
        ['admin', 'tokens', index, 'name'],
        `two tokens are named "${token.name}"`,
      );
    names.add(token.name);
  }
}
