import type { TenantSettings } from '../../config/schema/index.ts';
import type { RequestRecord } from '../../events/contracts.ts';
import type { SimulatedCaller } from '../caller.ts';

const ROUNDING = 1e-6;

type Limits = Omit<TenantSettings['limits'], 'routes'>;

/**
 * No limit of a tenant was overshot: all that was set aside when requests came, and given back or charged when they ended,
 * is played again on buckets of its own, which must never have been short. Tokens are checked where every request says
 * how many it wants at most; without, the gateway has to guess, and what it guessed too low is a debt by design.
 */
export function checkQuotas(
  tenants: Readonly<Record<string, TenantSettings>> | undefined,
  callers: readonly SimulatedCaller[],
  records: ReadonlyMap<string, RequestRecord>,
): string[] {
  const wrong: string[] = [];
  for (const [tenant, { limits }] of Object.entries(tenants ?? {})) {
    const own = callers.filter(({ arrival }) => arrival.tenant === tenant);
    const { routes, ...all } = limits;
    wrong.push(...check(tenant, all, own, records));
    for (const [route, some] of Object.entries(routes)) {
      const there = own.filter(({ arrival }) => arrival.route === route);
      wrong.push(...check(`${tenant} on ${route}`, some, there, records));
    }
  }
  return wrong;
}

function check(
  who: string,
  { requests, tokens, concurrency }: Limits,
  callers: readonly SimulatedCaller[],
  records: ReadonlyMap<string, RequestRecord>,
): string[] {
  const wrong: string[] = [];
  const admitted = callers.flatMap((caller) => {
    const record = records.get(caller.requestId);
    return record && wasAdmitted(record) ? [{ caller, record }] : [];
  });
  if (requests) {
    const takes = admitted.map(({ caller, record }) => takeOf(caller, 1, isCharged(record) ? 1 : 0));
    wrong.push(...overshot(who, 'requests', requests, takes));
  }
  const said = callers.every(
    ({ arrival }) => arrival.kind === 'embeddings' || arrival.outputTokensMax !== undefined,
  );
  if (tokens && said) {
    const takes = admitted.map(({ caller, record }) => {
      const { kind, outputTokensMax = 0 } = caller.arrival;
      const answer = kind === 'chat' ? outputTokensMax : 0;
      const reserved = Math.ceil(caller.body.length / BYTES_PER_TOKEN) + answer;
      return takeOf(caller, Math.min(reserved, tokens.amount), tokensCharged(record));
    });
    wrong.push(...overshot(who, 'tokens', tokens, takes));
  }
  if (concurrency !== undefined)
    wrong.push(
      ...crowded(
        who,
        concurrency,
        admitted.map(({ caller }) => caller),
      ),
    );
  return wrong;
}

/** Bytes of a body for one token of its prompt, as costs are reckoned. */
const BYTES_PER_TOKEN = 4;

function wasAdmitted({ outcome, code, steps }: RequestRecord): boolean {
  return code !== 'quota_exceeded' && outcome !== 'invalid' && steps.some((step) => step.code === 'admitted');
}

function isCharged({ attempts, outcome }: RequestRecord): boolean {
  return attempts > 0 || outcome === 'ok' || outcome === 'degraded';
}

/** What is charged for tokens at least: of an answer that did not come whole nobody knows here. */
function tokensCharged({ outcome, tokensIn = 0, tokensOut = 0, rung }: RequestRecord): number {
  return (outcome === 'ok' || outcome === 'degraded') && rung !== 'answer' ? tokensIn + tokensOut : 0;
}

interface Take {
  at: number;
  takes: number;
  endsAt: number;
  /** Given back when it ends; below 0 what it used beyond what it took. */
  gives: number;
}

function takeOf({ startedAt, endedAt }: SimulatedCaller, takes: number, charged: number): Take {
  return { at: startedAt, takes, endsAt: endedAt, gives: takes - charged };
}

function overshot(
  who: string,
  what: string,
  rate: { amount: number; perSeconds: number },
  takes: readonly Take[],
): string[] {
  // At one moment what ends gives back first; then those who come take in their order, and one that is over at once gives
  // back before the next one comes.
  const moments = takes
    .flatMap(({ at, takes: by, endsAt, gives }, index) => [
      { at, by: -by, order: index, takes: true },
      { at: endsAt, by: gives, order: endsAt === at ? index : -1, takes: false },
    ])
    .sort((a, b) => a.at - b.at || a.order - b.order || Number(b.takes) - Number(a.takes));
  let level = rate.amount;
  let last = 0;
  for (const { at, by, takes: taking } of moments) {
    level = Math.min(rate.amount, level + ((at - last) / 1000) * (rate.amount / rate.perSeconds));
    last = at;
    level = Math.min(rate.amount, level + by);
    if (taking && level < -ROUNDING * rate.amount - ROUNDING) {
      return [
        `${who} overshot its ${what} (${rate.amount} in ${rate.perSeconds} s) by ${-level} at ${at.toFixed(1)} ms`,
      ];
    }
  }
  return [];
}

function crowded(who: string, max: number, callers: readonly SimulatedCaller[]): string[] {
  const moments = callers.flatMap(({ startedAt, endedAt }) => [
    { at: startedAt, by: 1 },
    { at: endedAt, by: -1 },
  ]);
  moments.sort((a, b) => a.at - b.at || a.by - b.by);
  let running = 0;
  for (const { at, by } of moments) {
    running += by;
    if (running > max) return [`${who} had ${running} requests at once at ${at.toFixed(1)} ms, of ${max}`];
  }
  return [];
}
