import { ApiFault } from '../../api/contracts.ts';
import { Findings } from '../../config/checks.ts';
import { checkRelease } from '../../config/release-checks.ts';
import type { BackendSettings, ReleaseSettings, Settings } from '../../config/schema/index.ts';
import { OIP_ENGINES } from '../../config/schema/index.ts';
import { stableTargets } from './slices.ts';

/** A release that is asked for: its route, the backend that it goes to, and its settings, whoever gave them. */
export interface Wish {
  route: string;
  to: string;
  settings: ReleaseSettings;
}

/** Throws an ApiFault that says why a release cannot be begun, whatever the evidence. */
export function refuseImpossible({ route: name, to, settings: release }: Wish, settings: Settings): void {
  const route = settings.routes[name];
  if (!route) {
    const message = Object.hasOwn(settings.pipelines, name)
      ? `'${name}' is a pipeline: release the routes of its stages.`
      : `There is no route '${name}'${some(Object.keys(settings.routes))}.`;
    throw new ApiFault(404, 'not_found', message);
  }
  if (route.retired)
    throw conflict(`'${name}' is retired and answers nobody: armature retire ls shows what can be undone.`);
  const backend = settings.backends[to];
  if (!backend)
    throw new ApiFault(
      404,
      'not_found',
      `There is no backend '${to}'${some(Object.keys(settings.backends))}.`,
    );
  const stable = stableTargets(route.targets, to);
  if (stable.length === 0)
    throw conflict(`'${to}' answers all of '${name}' already: there is nothing to move.`);
  const answered = new Set(
    stable.flatMap((target) => answersOf(settings.backends[target.backend], settings)),
  );
  if (!answersOf(backend, settings).some((kind) => answered.has(kind))) {
    const message = `'${to}' answers ${answersOf(backend, settings).join(' and ')}, and what it would replace answers ${[...answered].join(' and ')}.`;
    throw conflict(message);
  }
  refuseBaseline(to, release, settings, answered);
  const judge = release.compare?.route;
  if (judge !== undefined && !settings.routes[judge])
    throw new ApiFault(404, 'not_found', `There is no route '${judge}' to compare answers by.`);
  const findings = new Findings({}, new Set());
  checkRelease(release, [], findings);
  for (const { message, hint } of findings.faults)
    throw new ApiFault(400, 'invalid_request', `${message}${hint === undefined ? '' : `: ${hint}`}.`);
}

function refuseBaseline(
  to: string,
  { baseline }: ReleaseSettings,
  settings: Settings,
  answered: Set<string>,
): void {
  if (baseline === undefined) return;
  const backend = settings.backends[baseline];
  if (!backend) throw new ApiFault(404, 'not_found', `There is no backend '${baseline}' to be the baseline.`);
  if (baseline === to) throw conflict(`'${to}' cannot be compared with itself: name another baseline.`);
  if (!answersOf(backend, settings).some((kind) => answered.has(kind)))
    throw conflict(`The baseline '${baseline}' answers something else than '${to}'.`);
}

/** What kinds of requests a backend answers; an engine elsewhere may do all that its protocol has. */
function answersOf(backend: BackendSettings | undefined, settings: Settings): string[] {
  if (!backend) return [];
  if (backend.engine === 'local') {
    const model = settings.models[backend.model];
    const usual = model?.format === 'onnx' ? ['embedding', 'tensors'] : ['chat'];
    return model?.task === undefined ? usual : [model.task];
  }
  return (OIP_ENGINES as readonly string[]).includes(backend.engine) ? ['tensors'] : ['chat', 'embedding'];
}

const NAMES_MAX = 12;

function some(names: string[]): string {
  if (names.length === 0) return '';
  return `; there are ${names.slice(0, NAMES_MAX).join(', ')}${names.length > NAMES_MAX ? ', ...' : ''}`;
}

export function conflict(message: string): ApiFault {
  return new ApiFault(409, 'conflict', message);
}
