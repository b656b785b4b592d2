import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { targetByWeight } from '../../policies/target-by-weight/index.ts';
import { answerStream } from '../../protocols/openai/answer-stream.ts';
import type { WorkerMetrics } from '../../telemetry/metrics.ts';
import { Batches } from '../batching/index.ts';
import type { BufferBudget } from '../buffer-budget.ts';
import type { Call } from '../call.ts';
import type { Exchange } from '../exchange.ts';
import { countRung } from '../ladder.ts';
import { STREAM_TYPE } from '../own-answers.ts';
import type { Path } from '../path.ts';
import { chooseArm } from '../release/arms.ts';
import type { Backend, World } from '../state/world.ts';
import { targetInput } from '../target-choice.ts';
import { chooseTier } from '../tiers.ts';
import { Flights } from './flight.ts';
import { AnswerKeeper } from './keeper.ts';
import { requestKey } from './key.ts';
import { AnswerStore, type KeptAnswer } from './store.ts';
import { cacheWish } from './wish.ts';

export interface AnswersDeps {
  clock: Clock;
  random: Random;
  world: World;
  metrics: WorkerMetrics;
  buffers: BufferBudget;
}

/** Answers that are kept, given again, and shared: what a route may have beside asking an engine for each request. */
export class Answers {
  readonly #deps: AnswersDeps;
  readonly #store = new AnswerStore();
  readonly #flights = new Flights();
  readonly #batches = new Batches();
  /** Model versions of the backends, as each snapshot has them. */
  readonly #versions = new WeakMap<Backend, string>();

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
    deps.world.onSwapped.push(() => this.#swapped());
  }

  /** Kept answers, and the bytes that they take. */
  get kept(): { count: number; bytes: number } {
    return { count: this.#store.size, bytes: this.#store.bytes };
  }

  /** True when the request has its answer, or gets that of another one: it is not to be planned. */
  begin(path: Path, x: Exchange): boolean {
    const rules = x.route!.answers!;
    const { buffers } = this.#deps;
    x.key = requestKey(x.tenant, x.call!, x.caller);
    const { key } = x;
    if (key) {
      const wish = cacheWish(x.caller.header('cache-control'));
      if (rules.ttl > 0 && key.repeats) {
        if (wish.lookUp && this.#hit(path, x, Math.min(rules.ttl, wish.ageMsMax))) return true;
        this.#count(x, wish.lookUp ? 'miss' : 'bypass');
      }
      if (rules.singleFlight && key.repeats && wish.lookUp && wish.keep) {
        this.#flights.join(path, x, (carrier) => this.beginCarrier(path, carrier));
        return true;
      }
      if (rules.keepMs > 0 && wish.keep) this.#listen(x, buffers);
    }
    return this.#goesTogether(path, x);
  }

  /** Brings a shared request on its way: its members have looked for a kept answer already. */
  beginCarrier(path: Path, carrier: Exchange): void {
    const rules = carrier.route!.answers!;
    if (rules.keepMs > 0) this.#listen(carrier, this.#deps.buffers);
    if (!this.#goesTogether(path, carrier)) path.start(carrier);
  }

  /** It goes upstream with others, or prepared: not by itself as it is. */
  #goesTogether(path: Path, x: Exchange): boolean {
    const { answers, prepare } = x.route!;
    if (prepare) return path.deps.preparing?.take(path, x, prepare) ?? false;
    return answers!.batch !== undefined && this.#batches.join(path, x);
  }

  /** The ladder's rung: the youngest answer that any target of the route has given to the same request. */
  stale(path: Path, x: Exchange, rung: number, staleMaxMs: number): boolean {
    const { clock, world } = this.#deps;
    const { key } = x;
    const wish = cacheWish(x.caller.header('cache-control'));
    if (!key || !wish.lookUp) return false;
    const now = clock.mono();
    const ageMsMax = Math.min(staleMaxMs, wish.ageMsMax);
    let found: KeptAnswer | undefined;
    for (const { backend } of world.present(x.route!.targets[x.call!.protocol])) {
      const kept = this.#store.get(this.#entryKey(key.hash, backend), now, ageMsMax);
      if (kept && (!found || kept.keptAt > found.keptAt)) found = kept;
    }
    const framed = found && frame(found, x.call!);
    if (!found || !framed) return false;
    const { name } = x.route!;
    const figures = { rung, backend: found.backend, ageMs: Math.round(now - found.keptAt) };
    path.step(x, 'rung', 'cached-answer', figures, `routes.${name}.ladder[${rung}].cached.staleMax`);
    x.degraded = 'cached';
    countRung(this.#deps.metrics, x);
    this.#count(x, 'stale');
    this.#give(path, x, found, framed, 'degraded');
    return true;
  }

  /** A full answer: of the target that the request would go to, so that weights hold for kept answers as well. */
  #hit(path: Path, x: Exchange, ageMsMax: number): boolean {
    const { clock, random, world } = this.#deps;
    const now = clock.mono();
    if (x.armed !== undefined) {
      chooseArm(path, x);
      x.armed.counts &&= !this.#isKeptForAnyArm(x, ageMsMax);
    }
    if (x.route!.tiers) chooseTier(path, x);
    const { targets } = x;
    let target = targets[0]!;
    if (targets.length > 1) {
      const input = targetInput(x, targets, world.sessionPlaces);
      const { choice } = targetByWeight.decide(input, now, random);
      target = targets.find(({ name }) => name === choice)!;
    }
    const kept = this.#store.get(this.#entryKey(x.key!.hash, target.backend), now, ageMsMax);
    const framed = kept && frame(kept, x.call!);
    if (!kept || !framed) return false;
    const figures = { backend: kept.backend, ageMs: Math.round(now - kept.keptAt) };
    path.step(x, 'answer', 'kept-answer', figures, `routes.${x.route!.name}.cache.ttl`);
    this.#count(x, 'hit');
    this.#give(path, x, kept, framed, 'ok');
    return true;
  }

  /** A larger arm has more of its answers kept, so questions whose answer is kept for one arm say nothing of either. */
  #isKeptForAnyArm(x: Exchange, ageMsMax: number): boolean {
    const { clock, world } = this.#deps;
    const { baseline } = x.armed!.release.arms;
    const names = x.route!.settings.targets.map(({ backend }) => backend).concat(baseline ?? []);
    return names.some((name) => {
      const backend = world.backends.get(name);
      return backend && this.#store.get(this.#entryKey(x.key!.hash, backend), clock.mono(), ageMsMax);
    });
  }

  #give(path: Path, x: Exchange, kept: KeptAnswer, framed: Framed, outcome: 'ok' | 'degraded'): void {
    const { clock, world } = this.#deps;
    const age = Math.max(0, Math.floor((clock.mono() - kept.keptAt) / 1000));
    const headers = [...framed.headers, 'age', String(age), 'x-armature-backend', kept.backend];
    x.attempt = undefined;
    x.backend = world.backends.get(kept.backend);
    x.tokensIn = x.tokensOut = 0; // no engine took any
    path.answer(x, { status: 200, headers, body: framed.body }, outcome);
  }

  #listen(x: Exchange, buffers: BufferBudget): void {
    const { answerBytesMax, keepMs } = x.route!.answers!;
    const { clock } = this.#deps;
    x.listener = new AnswerKeeper(x, {
      bytesMax: answerBytesMax,
      buffers,
      keep: (headers, body) => {
        const backend = x.backend!;
        const { tenant } = x;
        const answer = {
          tenant,
          route: x.route!.name,
          backend: backend.name,
          keptAt: clock.mono(),
          headers,
          body,
        };
        if (keepMs > 0 && this.#store.put(this.#entryKey(x.key!.hash, backend), answer))
          this.#count(x, 'stored');
      },
    });
  }

  /** What was kept for routes, tenants and bounds that are no more is given up. */
  #swapped(): void {
    const { world } = this.#deps;
    const { gateway, models } = world.snapshot!.settings;
    this.#store.bytesMax = gateway.cacheBytesMax;
    for (const backend of world.backends.values()) {
      const { engine } = backend.settings;
      // A local model is known by its files, whatever its name.
      const files = engine === 'local' ? models[backend.model] : undefined;
      const version = JSON.stringify([backend.name, engine, backend.model, files]);
      this.#versions.set(backend, hash('sha256', version, 'base64url'));
    }
    this.#store.sweep(
      ({ route, tenant }) =>
        (world.routes.get(route)?.answers?.keepMs ?? 0) > 0 && (world.tenants?.has(tenant) ?? true),
    );
  }

  /** An answer belongs to the model version that gave it: one that is replaced is never found again. */
  #entryKey(question: string, backend: Backend): string {
    return `${question}|${this.#versions.get(backend)}`;
  }

  #count(x: Exchange, outcome: 'hit' | 'miss' | 'bypass' | 'stale' | 'stored'): void {
    this.#deps.metrics.cache.of(x.route!.name, outcome).add();
  }
}

interface Framed {
  headers: readonly string[];
  body: Buffer | string;
}

/** A kept answer as the call asks for it: as a stream, or as the document that it is. */
function frame({ headers, body }: KeptAnswer, call: Call): Framed | undefined {
  if (!call.stream) return { headers, body };
  const kind = call.kind === 'completions' ? 'completions' : 'chat';
  const text = answerStream(JSON.parse(body.toString()), kind, call.request.usageAsked === true);
  return text === undefined ? undefined : { headers: STREAM_TYPE, body: text };
}
