import { isAwaited } from './cold-start.ts';
import type { Exchange } from './exchange.ts';
import { fixedAnswer } from './own-answers.ts';
import type { Path } from './path.ts';
import { speaks } from './state/world.ts';

/** Walks down the ladder to the next rung that can answer; where there is none, the caller is told the failure. */
export function descend(path: Path, x: Exchange): void {
  const { clock, metrics, world } = path.deps;
  const call = x.call!;
  const route = x.route!;
  const ladder =
    isPinned(x) || isSequence(x) || call.kind === 'model' || call.kind === 'model-ready'
      ? []
      : route.settings.ladder;
  const now = clock.mono();
  x.leaveLine?.();
  for (let at = x.rung + 1; at < ladder.length; at++) {
    const rung = ladder[at]!;
    if ('answer' in rung) {
      x.degraded = 'answer';
      const answer = fixedAnswer(x, call, rung.answer);
      if (!answer) continue;
      path.step(x, 'rung', 'fixed-answer', { rung: at }, `routes.${route.name}.ladder`);
      metrics.degraded.of(route.name, 'answer').add();
      metrics.shed.of(route.name, x.shedFor ?? x.failure?.code ?? 'overloaded').add();
      x.attempt = undefined;
      path.answer(x, answer, 'degraded');
      return;
    }
    if ('cached' in rung && path.deps.answers.stale(path, x, at, rung.cached.staleMax)) return;
    if ('backend' in rung && now < x.deadlineAt) {
      const backend = world.backends.get(rung.backend);
      if (!backend || !speaks(backend, call.protocol)) continue;
      const usable = backend.endpoints.some((endpoint) => endpoint.waitMs(now) === 0 && endpoint.hasRoom);
      if (!usable && !isAwaited(path, x, backend, now)) continue;
      x.rung = at;
      x.degraded = 'backend';
      x.targets = [{ name: backend.name, weight: 1, backend }];
      x.attemptsOfRung = 0;
      x.backend = undefined;
      path.step(
        x,
        'rung',
        'other-backend',
        { rung: at, backend: backend.name },
        `routes.${route.name}.ladder`,
      );
      path.plan(x, false);
      return;
    }
  }
  x.degraded = undefined;
  const failure = x.failure!;
  path.refuse(
    x,
    failure.code === 'overloaded'
      ? { ...failure, retryAfterSeconds: Math.max(failure.retryAfterSeconds ?? 0, retryAfter(x, now)) }
      : failure,
  );
}

/** The earliest moment at which an endpoint of the route may be used again, in whole seconds. */
function retryAfter(x: Exchange, now: number): number {
  const waits = x
    .route!.targets[x.call!.protocol].flatMap(({ backend: { host, endpoints } }) =>
      host?.coming(endpoints.length, now)
        ? [host.leftMs(now)]
        : endpoints.map((endpoint) => endpoint.waitMs(now)),
    )
    .filter((ms) => ms < Number.POSITIVE_INFINITY);
  const earliest = waits.length > 0 ? Math.min(...waits) : 1000;
  return Math.max(1, Math.ceil(earliest / 1000));
}

/** `/versions/N` names one version: nothing else may answer. */
export function isPinned(x: Exchange): boolean {
  return x.call!.protocol === 'oip' && x.call!.version !== undefined;
}

/** Its state lies at one endpoint: no other may answer. */
export function isSequence(x: Exchange): boolean {
  return x.call!.protocol === 'oip' && x.call!.request?.sequence !== undefined;
}
