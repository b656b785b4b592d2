import type { Failure } from '../../kernel/errors.ts';
import type { FittedBody } from '../contracts.ts';
import { weightOf } from '../cost.ts';
import type { Exchange } from '../exchange.ts';
import { descend } from '../ladder.ts';
import type { Path } from '../path.ts';
import type { Endpoint } from '../state/endpoint.ts';
import type { Backend } from '../state/world.ts';
import { widen } from '../tiers.ts';

/** Whether what it is sent is made for each backend: of calls that have a transcript, and of routes that ask for it. */
export function isFitted(x: Exchange): boolean {
  const { call } = x;
  if (call?.protocol !== 'openai' || call.kind !== 'chat') return false;
  return x.fits !== false || x.route!.settings.context?.fit === true;
}

/** The body made for this backend; undefined where none was, or where the caller's own goes. */
export function fittedFor(x: Exchange, backend: Backend): FittedBody | undefined {
  return x.fitted?.find((made) => made.backend === backend.name && made.settings === backend.settings);
}

/**
 * Has the body made for a backend at whose endpoint a place is held, and goes on with it. Where the request is over
 * before, or goes another way, the making ends and the place is given back.
 */
export function fitFirst(
  path: Path,
  x: Exchange,
  backend: Backend,
  endpoint: Endpoint,
  go: () => void,
): void {
  const { contexts, world } = path.deps;
  const tokens = weightOf(x.cost);
  let cancel: (() => void) | undefined;
  let open = true;
  let held = true;
  const end = () => {
    open = false;
    x.leaveLine = undefined;
  };
  const giveBack = () => {
    if (!held) return;
    held = false;
    endpoint.give(tokens);
    world.freed(endpoint);
  };
  const leave = () => {
    if (!open) return;
    end();
    cancel?.();
    giveBack();
  };
  x.leaveLine = leave;
  x.scope.add(leave);
  path.watchTime(x);
  const done = (result: FittedBody | Failure) => {
    if (!open) return;
    end();
    if ('code' in result) {
      giveBack();
      unfit(path, x, backend, result);
      return;
    }
    keep(x, result);
    if (result.tokensIn !== undefined) x.cost = { tokensIn: result.tokensIn, tokensOut: x.cost.tokensOut };
    if (held) {
      endpoint.tokensInFlight += weightOf(x.cost) - tokens;
      go();
    } else path.plan(x, x.attemptsOfRung > 0);
  };
  cancel = contexts.fit(path, x, backend, endpoint, done, giveBack);
}

/** Of the backends that it was sent to lately: a retry goes to one of them, or to one more. */
const KEPT_MAX = 8;

function keep(x: Exchange, made: FittedBody): void {
  const others = x.fitted?.filter(({ backend }) => backend !== made.backend) ?? [];
  x.fitted = [made, ...others.slice(0, KEPT_MAX - 1)];
}

/** It cannot be put so that this backend takes it: another target may, or a rung, or nobody. */
function unfit(path: Path, x: Exchange, { name }: Backend, failure: Failure): void {
  x.failure ??= failure; // what it met before says more
  x.tiering?.unfit.push(name);
  if (x.armed) x.armed.unfit = [...x.armed.unfit, name];
  widen(path, x);
  x.targets = x.targets.filter((target) => target.name !== name);
  if (x.targets.length > 0) path.plan(x, false);
  else descend(path, x);
}
