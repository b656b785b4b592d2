import type { HeaderList } from '../contracts.ts';
import type { Rate } from './reservation.ts';

const KINDS = ['requests', 'tokens'] as const;

/** Adds the headers by which OpenAI tells what is left; where several limits hold, of the one with the least. */
export function addRateLimits(rates: readonly Rate[], now: number, headers: HeaderList): void {
  for (const kind of KINDS) {
    let least: Rate | undefined;
    let left = 0;
    for (let i = 0; i < rates.length; i++) {
      const rate = rates[i]!;
      if (rate.limit.kind !== kind) continue;
      const level = rate.bucket.level(now);
      if (least && level >= left) continue;
      least = rate;
      left = level;
    }
    if (!least) continue;
    headers.push(
      `x-ratelimit-limit-${kind}`,
      String(Math.floor(least.limit.burst)),
      `x-ratelimit-remaining-${kind}`,
      String(Math.max(0, Math.floor(left + 1e-6))),
      `x-ratelimit-reset-${kind}`,
      formatReset(least.bucket.fullMs(now)),
    );
  }
}

/** As OpenAI writes how long it is until all is there again: `0s`, `120ms`, `8.64s`, `6m0s`, `1h0m0s`. */
export function formatReset(ms: number): string {
  if (ms <= 0) return '0s';
  if (ms <= 999) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 10) / 100;
  if (seconds < 60) return `${seconds}s`;
  const whole = Math.ceil(seconds);
  const minutes = Math.floor(whole / 60);
  const rest = `${minutes % 60}m${whole % 60}s`;
  return minutes < 60 ? rest : `${Math.floor(minutes / 60)}h${rest}`;
}
