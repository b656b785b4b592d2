import { coldStart, isHeldFor } from '../policies/cold-start/index.ts';
import type { Exchange } from './exchange.ts';
import { hostStarting } from './failures.ts';
import { isSequence } from './ladder.ts';
import { noteDecision } from './note-decision.ts';
import type { Path } from './path.ts';
import type { Backend } from './state/world.ts';

/**
 * The backend whose host a request that can go nowhere else waits for: one that is starting, or that is idle and is woken
 * by it. Undefined where there is none, or where the start would outlast its deadline; then its failure says so.
 */
export function awaitedStart(path: Path, x: Exchange): Backend | undefined {
  if (isSequence(x)) return undefined; // its state is gone with the host, or lies elsewhere
  const { clock, random, world } = path.deps;
  const now = clock.mono();
  const backend = soonest(x, now);
  const host = backend?.host;
  if (!backend || !host) return undefined;
  if (host.state === 'idle') world.wakeHost(backend, x.id); // also where it is too late for this one: others follow
  const { state, expectedMs } = host;
  const input = { state, expectedMs, startingMs: host.startingMs(now), deadlineMs: x.deadlineAt - now };
  const { choice, reason } = coldStart.decide(input, now, random);
  const step = noteDecision(x, now, 'wait', {
    policy: coldStart,
    reason: { ...reason, figures: { backend: backend.name, ...reason.figures } },
    input,
    draws: [],
    setting: `routes.${x.route!.name}.deadline`,
  });
  if (host.cause !== undefined) step.causes = [host.cause];
  if (choice) return backend;
  if (x.failure?.code !== 'backend_error') x.failure = hostStarting(backend.name, host.leftMs(now));
  return undefined;
}

/**
 * A target whose host is idle is passed over while another can answer, and would be for ever: one that would have gone there
 * by its weight wakes it.
 */
export function wakeByShare(path: Path, x: Exchange): void {
  const { random, world } = path.deps;
  let left = random.next() * x.targets.reduce((sum, { weight }) => sum + weight, 0);
  for (const { backend, weight } of x.targets) {
    left -= weight;
    if (left >= 0) continue;
    if (backend.host?.state === 'idle') world.wakeHost(backend, x.id);
    return;
  }
}

/** Whether a rung's backend has a host that serves soon enough; one that is idle is woken, if only for those who follow. */
export function isAwaited(path: Path, x: Exchange, backend: Backend, now: number): boolean {
  const { host, endpoints } = backend;
  if (!host?.coming(endpoints.length, now)) return false;
  if (host.state === 'idle') path.deps.world.wakeHost(backend, x.id);
  return isHeldFor(host.state) && host.leftMs(now) <= x.deadlineAt - now;
}

function soonest(x: Exchange, now: number): Backend | undefined {
  let found: Backend | undefined;
  for (const { backend } of x.targets) {
    if (!backend.host?.coming(backend.endpoints.length, now)) continue;
    if (!found || backend.host.leftMs(now) < found.host!.leftMs(now)) found = backend;
  }
  return found;
}
