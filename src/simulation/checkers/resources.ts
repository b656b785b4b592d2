import type { SimulatedGateway } from '../gateway.ts';

/** Figures that are reckoned with fractions may differ so much from what they are. */
const ROUNDING = 1e-6;

/** When nothing is asked, nothing is taken: places, tokens, queue places, buffers, slots of quotas, timers. */
export function checkNothingTaken(gateway: SimulatedGateway): string[] {
  const left = Object.entries({ ...gateway.taken, timers: gateway.timers }).filter(
    ([, value]) => Math.abs(value) > ROUNDING,
  );
  return left.map(([what, value]) => `${what}: ${value} left behind`);
}

/** Watches, at every moment it is asked to, that places are neither lost nor made. */
export class PlaceWatch {
  readonly wrong: string[] = [];
  readonly #gateway: SimulatedGateway;
  /** The highest limit that each endpoint ever had. */
  readonly #caps = new Map<string, number>();

  constructor(gateway: SimulatedGateway) {
    this.#gateway = gateway;
  }

  /** To be called after each swap of settings. */
  swapped(): void {
    for (const backend of this.#gateway.gateway.world.backends.values()) {
      const cap = backend.settings.limits.concurrency;
      for (const { key } of backend.endpoints) this.#caps.set(key, Math.max(cap, this.#caps.get(key) ?? 0));
    }
  }

  look(): void {
    if (this.wrong.length > 10) return;
    const { gateway, engines, time } = this.#gateway;
    const atOrigin = new Map<string, number>();
    for (const endpoint of gateway.world.endpoints.values()) {
      const { key, inflight, tokensInFlight, address } = endpoint;
      const cap = this.#caps.get(key) ?? 0;
      const say = (what: string) => this.wrong.push(`at ${time.mono().toFixed(1)} ms ${key}: ${what}`);
      if (inflight > cap) say(`${inflight} places taken of ${cap}`);
      if (inflight < 0 || tokensInFlight < -ROUNDING)
        say(`${inflight} places and ${tokensInFlight} tokens taken`);
      if (inflight === 0 && tokensInFlight > ROUNDING) say(`${tokensInFlight} tokens taken by nobody`);
      const { origin } = new URL(address);
      atOrigin.set(origin, (atOrigin.get(origin) ?? 0) + inflight);
    }
    for (const [origin, engine] of engines) {
      const taken = atOrigin.get(origin) ?? 0;
      if (engine.inflight > taken)
        this.wrong.push(
          `at ${time.mono().toFixed(1)} ms ${origin}: ${engine.inflight} requests are there, and ${taken} places are taken`,
        );
    }
  }
}
