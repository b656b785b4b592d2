import type { LimitController } from '../../src/policies/limit-contract.ts';

interface Alike {
  count: number;
  everyMs: number;
  inFlight: number;
  unit?: number;
  ratio?: number;
  share?: number;
  fromMs?: number;
}

/** For tests: tells a controller of answers that are all alike, each sent right after the one before it came. */
export function answers(controller: LimitController, alike: Alike): void {
  const { count, everyMs, inFlight, unit = 1, ratio = 1, share = 0.5, fromMs = 0 } = alike;
  for (let at = 0; at < count; at++) {
    const now = fromMs + at * everyMs;
    controller.observe(
      {
        sentAt: now,
        whole: false,
        ratio,
        excess: ratio - 1,
        held: 100,
        share,
        allowedPart: 1,
        inFlight,
        unit,
        saturated: inFlight >= 0.9 * controller.limit,
      },
      now,
    );
  }
}
