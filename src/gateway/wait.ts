import type { Exchange } from './exchange.ts';
import { queueFull } from './failures.ts';
import { descend } from './ladder.ts';
import type { Path } from './path.ts';
import { takePlace } from './plan.ts';
import type { Endpoint } from './state/endpoint.ts';
import type { Waiter } from './state/waiting-line.ts';
import type { Backend } from './state/world.ts';

type Go = (backend: Backend, endpoint: Endpoint) => void;

/**
 * Lets a request wait for a place at the backend, within its route's queue and its own deadline. `go` is called with the
 * place, taken. Where the queue is full, or no endpoint is left to wait for, another way is looked for at once.
 */
export function waitForPlace(path: Path, x: Exchange, backend: Backend, go: Go): void {
  const { clock, metrics, world } = path.deps;
  const route = x.route!;
  // Each worker has its share of the places in the queue.
  const max = Math.ceil(route.settings.queue.max / (world.snapshot?.settings.gateway.workers ?? 1));
  if (route.waiting.count >= max) {
    path.step(
      x,
      'wait',
      'queue-full',
      { waiting: route.waiting.count, max },
      `routes.${route.name}.queue.max`,
    );
    x.failure = queueFull(route);
    descend(path, x);
    return;
  }
  path.watchTime(x);
  const since = clock.mono();
  route.waiting.count++;
  let waiting = true;
  const leave = () => {
    if (!waiting) return;
    waiting = false;
    route.waiting.count--;
    backend.line.leave(waiter);
    const waitedMs = clock.mono() - since;
    x.waitedMs += waitedMs;
    metrics.queueSeconds.of(x.priority).observe(waitedMs / 1000);
    path.step(x, 'wait', 'waited', { waitedMs: Math.round(waitedMs), priority: x.priority });
  };
  const waiter: Waiter = {
    priority: x.priority,
    onTurn: () => {
      const present = world.backends.get(backend.name);
      const endpoint = present && takePlace(x, present, path.deps, clock.mono());
      if (endpoint) {
        leave();
        go(present, endpoint);
        return true;
      }
      if (present && (x.only === undefined || x.only.waitMs(clock.mono()) === 0)) return false;
      waiter.onHopeless();
      return true;
    },
    onHopeless: () => {
      leave();
      path.plan(x, x.attemptsOfRung > 0);
    },
  };
  backend.line.join(waiter);
  x.scope.add(leave);
  x.leaveLine = leave;
}
