import type { BackendSettings, RouteSettings, Settings, StressSettings } from '../../config/schema/index.ts';
import { OIP_ENGINES } from '../../config/schema/index.ts';
import type { LoadTask } from '../../load/contracts.ts';
import type { Action } from '../contracts.ts';

type Reason = Action['reason'];

/** Of the duration, that is sent before and not counted. */
const WARMUP_SHARE = 0.2;
/** A request that takes longer has failed, milliseconds: so many times what 99 of 100 may take, within these bounds. */
const TIMEOUT_TIMES = 5;
const TIMEOUT_MS_MIN = 10_000;
const TIMEOUT_MS_MAX = 120_000;

/** What the load is to be, of which the caps of the backend have been kept; or why there is to be none. */
export function stressLoad(
  stress: StressSettings,
  name: string,
  { settings, endpoints }: { settings: Settings; endpoints: readonly string[] },
): Pick<LoadTask, Exclude<keyof LoadTask, 'headers' | 'tls' | 'cap'>> | Reason {
  const backend = settings.backends[name]!;
  const callers = servesCallers(name, endpoints, settings);
  if (callers) return { code: 'stress-on-callers', figures: callers };
  const kind = stress.kind ?? kindOf(backend, settings);
  const each = stress.tokensIn + stress.tokensOut;
  const byTokens =
    stress.tokensInFlightMax === undefined ? undefined : Math.floor(stress.tokensInFlightMax / each);
  const cap = Math.min(backend.limits.concurrency, byTokens ?? Number.POSITIVE_INFINITY);
  const asked = stress.concurrency ?? 1;
  const inflight = Math.ceil(asked / endpoints.length);
  if (inflight > cap) {
    const figures = { asked, endpoints: endpoints.length, cap: cap * endpoints.length };
    return { code: 'stress-over-caps', figures };
  }
  const perSecond = stress.rate && stress.rate.amount / stress.rate.perSeconds;
  return {
    endpoints: endpoints.map((address) => targetOf(address, backend, kind)),
    model: backend.model,
    kind,
    ...(perSecond === undefined ? {} : { perSecond }),
    inflightMax: perSecond === undefined ? inflight : cap,
    tokensIn: stress.tokensIn,
    tokensOut: stress.tokensOut,
    warmupMs: stress.duration * WARMUP_SHARE,
    durationMs: stress.duration,
    timeoutMs: Math.min(TIMEOUT_MS_MAX, Math.max(TIMEOUT_MS_MIN, stress.p99Max * TIMEOUT_TIMES)),
    seed: 1,
  };
}

/** Who would feel it: a route with the backend among its targets or rungs, or another backend at one of its servers that has one. */
function servesCallers(
  name: string,
  endpoints: readonly string[],
  { backends, routes }: Settings,
): Reason['figures'] | undefined {
  const origins = new Set(endpoints.map((address) => new URL(address).origin));
  for (const [route, settings] of Object.entries(routes)) {
    for (const backend of answering(settings)) {
      const other = backends[backend];
      const at = other && 'endpoints' in other ? other.endpoints : [];
      if (backend === name || at.some((address) => origins.has(new URL(address).origin)))
        return { route, backend };
    }
  }
  return undefined;
}

/** Backends that may answer a caller of the route. */
function answering({ targets, ladder }: RouteSettings): string[] {
  return [
    ...targets.flatMap(({ backend, weight }) => (weight > 0 ? [backend] : [])),
    ...ladder.flatMap((rung) => ('backend' in rung ? [rung.backend] : [])),
  ];
}

/** What a backend is asked for where nothing is said. */
function kindOf(backend: BackendSettings, { models }: Settings): LoadTask['kind'] {
  if (isOip(backend)) return 'tensors';
  const model = backend.engine === 'local' ? models[backend.model] : undefined;
  if (model?.format !== 'onnx') return model?.task === 'embedding' ? 'embeddings' : 'chat';
  return (model.task ?? (model.tokenizer ? 'embedding' : 'tensors')) === 'tensors' ? 'tensors' : 'embeddings';
}

function isOip({ engine }: BackendSettings): boolean {
  return (OIP_ENGINES as readonly string[]).includes(engine);
}

/** Addresses of OpenAI's API end with its path, those of the Open Inference Protocol stand before it. */
function targetOf(
  address: string,
  backend: BackendSettings,
  kind: LoadTask['kind'],
): LoadTask['endpoints'][number] {
  const { origin, pathname } = new URL(address);
  const path = pathname.replace(/\/+$/, '');
  if (kind !== 'tensors') return { origin, base: path };
  return { origin, base: `${isOip(backend) ? path : path.replace(/\/v1$/, '')}/v2` };
}
