import type { RequestRecord } from '../../src/events/contracts.ts';
import { REASONS } from '../../src/events/reasons.ts';
import { ERRORS } from '../../src/kernel/errors.ts';
import type { SimulatedCaller } from '../../src/simulation/caller.ts';
import { checkAnswers, checkReasons, checkRefusals } from '../../src/simulation/checkers/answers.ts';
import { OrderWatch } from '../../src/simulation/checkers/order.ts';
import { checkQuotas } from '../../src/simulation/checkers/quotas.ts';
import { checkNothingTaken, PlaceWatch } from '../../src/simulation/checkers/resources.ts';
import { checkRetries } from '../../src/simulation/checkers/retries.ts';
import { SimulatedGateway } from '../../src/simulation/gateway.ts';
import type { WorldPlan } from './world.ts';

export interface Played {
  callers: SimulatedCaller[];
  /** By the id that its caller sent. */
  records: Map<string, RequestRecord>;
  /** What was not as it has to be, in words; empty when all was. */
  wrong: string[];
  /** Turns in which several priorities waited. */
  contested: number;
}

/** How often it is looked at what is taken. */
const LOOK_MS = 97;
/** After the last arrival: longer than any deadline and time limit of a world. */
const TAIL_MS = 200_000;

/** Plays a world to its end and checks what must hold in every one. */
export function playWorld(plan: WorldPlan): Played {
  const records = new Map<string, RequestRecord>();
  const gateway = new SimulatedGateway({
    settings: plan.settings,
    seed: plan.seed,
    gauges: plan.gauges,
    wantsRecord: () => true,
    onRecord: (record) => records.set(record.requestId ?? record.id, record),
  });
  const { time } = gateway;
  const { path, world } = gateway.gateway;
  const places = new PlaceWatch(gateway);
  places.swapped();
  const order = new OrderWatch(gateway);
  order.swapped();
  const callers: SimulatedCaller[] = [];
  const deadlines = new Map<SimulatedCaller, number>();
  for (const arrival of plan.arrivals) {
    time.set(arrival.atMs, () => {
      const asked = world.routes.get(arrival.route) ?? world.pipelines.get(arrival.route);
      const route = asked?.settings.deadline ?? Number.POSITIVE_INFINITY;
      const caller = gateway.send(arrival);
      callers.push(caller);
      deadlines.set(caller, Math.min(route, arrival.deadlineMs ?? route));
    });
  }
  for (const swap of plan.swaps) {
    time.set(swap.atMs, () => {
      gateway.load(swap.settings);
      places.swapped();
      order.swapped();
    });
  }
  disturb(gateway, plan);
  if (plan.drain) {
    time.set(plan.drain.atMs, () => {
      path.unready = path.draining = true;
    });
    time.set(plan.drain.endAtMs, () => path.endAll());
  }
  const end = plan.durationMs + TAIL_MS;
  while (time.mono() < end) {
    time.run(path.running.size > 0 || time.mono() < plan.durationMs ? LOOK_MS : end - time.mono());
    places.look();
  }
  const lastEnd = callers.reduce((last, { endedAt }) => Math.max(last, endedAt), 0);
  let sent = 0;
  for (const engine of gateway.engines.values()) sent += engine.requests;
  const { routes, tenants, pipelines } = plan.settings;
  // What stages took, and tried again, stands with their pipeline: who only sees callers cannot tell it apart.
  const piped = Object.keys(pipelines).length > 0;
  const shadows = Object.values(routes).some(({ shadow }) => shadow.length > 0);
  const wrong = [
    ...checkAnswers(callers, (caller) => deadlines.get(caller)!),
    ...checkRefusals(callers),
    ...checkReasons(records, callers, hasWords),
    ...checkQuotas(piped ? withoutTokens(tenants) : tenants, callers, records),
    ...(piped ? [] : checkRetries(routes, records.values(), sent, shadows, lastEnd)),
    ...order.wrong,
    ...places.wrong,
    ...checkNothingTaken(gateway),
  ];
  return { callers, records, wrong, contested: order.contested };
}

function disturb(gateway: SimulatedGateway, plan: WorldPlan): void {
  const { time } = gateway;
  for (const mishap of plan.mishaps) {
    time.set(mishap.atMs, () => {
      const engines = gateway.enginesOf(mishap.backend);
      const engine = engines[mishap.endpoint % Math.max(1, engines.length)];
      if (!engine) return;
      if (mishap.kind === 'cut') engine.cut();
      else if (mishap.kind === 'restart') engine.restart(mishap.downMs);
      else {
        engine.ails(mishap.ailment);
        time.set(mishap.forMs, () => engine.ails(undefined));
      }
    });
  }
}

function withoutTokens(tenants: WorldPlan['settings']['tenants']): typeof tenants {
  const next = structuredClone(tenants);
  for (const { limits } of Object.values(next ?? {})) {
    delete limits.tokens;
    for (const route of Object.values(limits.routes)) delete route.tokens;
  }
  return next;
}

function hasWords(code: string): boolean {
  return Object.hasOwn(REASONS, code) || Object.hasOwn(ERRORS, code);
}
