import { Delivery } from '../delivery.ts';
import type { Exchange } from '../exchange.ts';
import { isPinned } from '../ladder.ts';
import type { Path } from '../path.ts';
import type { Endpoint } from '../state/endpoint.ts';
import type { Backend } from '../state/world.ts';
import { Attempt } from './attempt.ts';
import { fitFirst, fittedFor, isFitted } from './fitting.ts';
import { armHedge } from './hedge.ts';

/** Sends a request to an endpoint at which it has a place. `fresh`: on a connection that never carried a request. */
export function send(path: Path, x: Exchange, backend: Backend, endpoint: Endpoint, fresh: boolean): void {
  if (isFitted(x) && !fittedFor(x, backend))
    fitFirst(path, x, backend, endpoint, () => sendNow(path, x, backend, endpoint, fresh));
  else sendNow(path, x, backend, endpoint, fresh);
}

function sendNow(path: Path, x: Exchange, backend: Backend, endpoint: Endpoint, fresh: boolean): void {
  const attempt = prepare(path, x, backend, endpoint, fresh);
  x.backend = backend;
  x.attempt = attempt;
  if (x.route!.drift !== undefined && x.tried.length === 1) x.route!.drift.listen(x);
  if (x.route!.settings.hedge !== undefined) armHedge(path, x, attempt);
  path.watchTime(x);
  attempt.start();
  if (x.route!.shadows !== undefined && x.tried.length === 1 && x.rung < 0) path.deps.shadows.copy(path, x);
}

/** Makes an attempt of a place that was taken, and notes it; it has not started yet. */
export function prepare(
  path: Path,
  x: Exchange,
  backend: Backend,
  endpoint: Endpoint,
  fresh: boolean,
): Attempt {
  const trial = path.deps.watch.tries(endpoint, x.id);
  if (isPinned(x)) x.only = endpoint; // another one may have another version under that number
  x.tried.push(endpoint);
  backend.line.kept.began(x.tenant, x.share);
  x.attempts++;
  x.attemptsOfRung++;
  path.step(x, 'attempt', trial ? 'trial' : fresh ? 'sent-on-fresh-connection' : 'sent', {
    backend: backend.name,
    endpoint: endpoint.address,
    attempt: x.attempts,
    inflight: endpoint.inflight,
    limit: endpoint.limit,
  });
  const delivery = new Delivery(path, x);
  const attempt = new Attempt({ x, backend, endpoint, fresh, trial, host: delivery, deps: path.deps });
  delivery.attempt = attempt;
  return attempt;
}
