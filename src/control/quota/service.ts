import { type RateLimit, rateLimitsOf } from '../../config/rate-limits.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { ControlToGateway } from '../../links/messages.ts';
import { TokenBucket } from '../../policies/token-bucket/index.ts';
import type { QuotaRequest } from '../gateways.ts';

/** How long after its start a control believes what workers say of rates that it does not know itself. */
const LEARN_MS = 5_000;
/** Rates of one question: of a tenant and of one of its routes, requests and tokens. */
const KEYS_MAX = 4;

/** What the service needs of a connected worker. */
export interface QuotaPeer {
  boot: string;
  send(message: ControlToGateway): boolean;
}

interface Rate {
  limit: RateLimit;
  bucket: TokenBucket;
  /** Nobody has asked for any of it yet. */
  untouched: boolean;
  /** Workers that were refused, and are told when something comes back. */
  refused: Set<QuotaPeer>;
}

/**
 * The rates that the workers of this control share: one bucket for each. A new control does not know what is left of them;
 * its workers tell it what they think, and the least that is said counts.
 */
export class QuotaService {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #rates = new Map<string, Rate>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.mono();
  }

  /** The limits of a new snapshot. What is there of each stays, in proportion. */
  swap(tenants: Settings['tenants']): void {
    const now = this.#clock.mono();
    const rates = new Map<string, Rate>();
    for (const limit of rateLimitsOf(tenants)) {
      const known = this.#rates.get(limit.key);
      if (!known) {
        const bucket = new TokenBucket(limit, now);
        rates.set(limit.key, { limit, bucket, untouched: true, refused: new Set() });
        continue;
      }
      rates.set(limit.key, known);
      if (known.limit.burst !== limit.burst || known.limit.perSecond !== limit.perSecond) {
        known.bucket.resize(limit, now);
        this.#tell(known, now);
      }
      known.limit = limit;
    }
    this.#rates = rates;
  }

  /** Throws on what makes no sense; the link of that worker then ends. */
  heard(peer: QuotaPeer, message: QuotaRequest): void {
    if (message.type === 'quota-ask') this.#ask(peer, message);
    else if (message.type === 'quota-used') this.#used(message.used);
    else this.#learn(message.levels);
  }

  left(peer: QuotaPeer): void {
    for (const { refused } of this.#rates.values()) refused.delete(peer);
  }

  /** What is there of each rate now, by its key. */
  levels(): ReadonlyMap<string, number> {
    const now = this.#clock.mono();
    return new Map([...this.#rates].map(([key, { bucket }]) => [key, bucket.level(now)]));
  }

  #ask(peer: QuotaPeer, { ask, keys, amounts }: Extract<QuotaRequest, { type: 'quota-ask' }>): void {
    if (keys.length > KEYS_MAX || amounts.length !== keys.length) throw new Error('no question about rates');
    const now = this.#clock.mono();
    const rates = keys.map((key) => this.#rates.get(key));
    let granted = true;
    for (let i = 0; i < rates.length && granted; i++) {
      const rate = rates[i];
      const asked = amount(amounts[i]);
      if (!rate || asked === 0) continue;
      rate.untouched = false;
      if (rate.bucket.decide({ asked }, now).choice) continue;
      granted = false;
      for (let taken = 0; taken < i; taken++) rates[taken]?.bucket.observe({ used: -amounts[taken]! }, now);
    }
    const levels = rates.map((rate, i) => {
      if (!rate) return null;
      if (!granted && rate.bucket.waitMs(amounts[i]!, now) > 0) rate.refused.add(peer);
      return rate.bucket.level(now);
    });
    peer.send({ type: 'quota-answer', ask, granted, levels });
  }

  #used(used: Record<string, number>): void {
    const now = this.#clock.mono();
    for (const [key, units] of Object.entries(used)) {
      if (!Number.isFinite(units)) throw new Error(`${units} is no amount of a rate`);
      const rate = this.#rates.get(key);
      if (!rate) continue;
      rate.untouched = false;
      rate.bucket.observe({ used: units }, now);
      if (units < 0) this.#tell(rate, now);
    }
  }

  /** Those that were refused need not wait for what they were told of. */
  #tell({ limit: { key }, bucket, refused }: Rate, now: number): void {
    for (const peer of refused) peer.send({ type: 'quota-level', key, level: bucket.level(now) });
    refused.clear();
  }

  #learn(levels: Record<string, number>): void {
    const now = this.#clock.mono();
    const young = now - this.#startedAt < LEARN_MS;
    for (const [key, level] of Object.entries(levels)) {
      if (!Number.isFinite(level)) throw new Error(`${level} is no level of a rate`);
      const rate = this.#rates.get(key);
      if (rate && (young || rate.untouched)) rate.bucket.set(Math.min(level, rate.bucket.level(now)), now);
    }
  }
}

function amount(units: number | undefined): number {
  if (units === undefined || !Number.isFinite(units) || units < 0)
    throw new Error(`${units} is no amount of a rate`);
  return units;
}
