import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { Accelerator } from './accelerator/accelerator.ts';
import type { AcceleratorProfile } from './accelerator/step.ts';

/** One request as it was measured at an engine; milliseconds. */
export interface Measured {
  atMs: number;
  promptTokens: number;
  outputTokens: number;
  /** Of a stream. */
  firstTokenMs: number | undefined;
  totalMs: number;
}

export interface Fit {
  profile: AcceleratorProfile;
  /** How far the simulation of the same requests is from what was measured, as a share: by percentile, of the whole times. */
  errors: { p50: number; p90: number; p99: number };
  /** Root of the mean square of the logarithms by which single requests differ. */
  spread: number;
}

/** Sizes of batches that are tried where nobody says how many run together. */
const BATCHES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const ROUNDS = 40;
/** More are not looked at: the first ones are enough. */
const REQUESTS_MAX = 2000;
const KV_TOKENS_MAX = 1e9;

/** Sizes of steps that are tried where nobody says how large they are. */
const STEPS = [512, 256, 128, 64, 32];
/** A closer fit by less than this, and by less than this share, is none: what was not told stays at its default. */
const CLOSER = 0.002;
const CLOSER_SHARE = 0.01;

export interface Known {
  /** Sequences that the engine runs together. */
  batchMax?: number | undefined;
  /** Tokens that it computes in one step. */
  stepTokensMax?: number | undefined;
}

/** A point of the search: logarithms of the rates, the last of them only where it is a rate of its own. */
type Point = number[];

interface Found {
  at: Point;
  batchMax: number;
  stepTokensMax: number | undefined;
  error: number;
}

/**
 * Finds the profile with which the simulated accelerator takes the times that were measured: the same requests are put to
 * it at the same moments, and the rates are moved until the logarithms of the times differ least. First the rates of
 * prompts and of one answer, for each size of batch; then, with that size, the rate of many answers too, for each size of
 * step.
 * Method: the simplex search of Nelder and Mead (1965) over the logarithms of the rates.
 */
export function fitProfile(measured: readonly Measured[], known: Known = {}): Fit {
  const some = measured.slice(0, REQUESTS_MAX);
  let best: Found | undefined;
  const search = (start: Point, batchMax: number, stepTokensMax: number | undefined) => {
    const found = simplex((point) => errorOf(some, profileOf(point, batchMax, stepTokensMax)), start);
    if (!best || found.error < Math.min(best.error - CLOSER, best.error * (1 - CLOSER_SHARE)))
      best = { ...found, batchMax, stepTokensMax };
  };
  // A larger batch that explains no more is no better: what never fills it tells nothing of its size.
  for (const batchMax of known.batchMax === undefined ? BATCHES : [known.batchMax])
    search(best?.at ?? firstGuess(some), batchMax, known.stepTokensMax);
  const steps = known.stepTokensMax === undefined ? [undefined, ...STEPS] : [known.stepTokensMax];
  for (const stepTokensMax of steps) {
    const [prefill, decode, decodeMax = prefill] = best!.at as [number, number, number?];
    search([prefill, decode, decodeMax], best!.batchMax, stepTokensMax);
  }
  const profile = rounded(profileOf(best!.at, best!.batchMax, best!.stepTokensMax));
  return { profile, errors: percentileErrors(some, profile), spread: best!.error };
}

function profileOf(at: Point, batchMax: number, stepTokensMax: number | undefined): AcceleratorProfile {
  const [prefill, decode, decodeMax] = at as [number, number, number?];
  return {
    prefillTokensPerSecond: Math.exp(prefill),
    decodeTokensPerSecond: Math.exp(decode),
    decodeTokensPerSecondMax: decodeMax === undefined ? undefined : Math.exp(decodeMax),
    stepTokensMax,
    batchMax,
    kvTokensMax: KV_TOKENS_MAX,
    coldStart: 0,
    jitter: 0,
    faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
  };
}

/** Three digits are all that a measurement is worth. */
function rounded(profile: AcceleratorProfile): AcceleratorProfile {
  const short = (value: number) => Number(value.toPrecision(3));
  const { prefillTokensPerSecond, decodeTokensPerSecond, decodeTokensPerSecondMax } = profile;
  return {
    ...profile,
    prefillTokensPerSecond: short(prefillTokensPerSecond),
    decodeTokensPerSecond: short(decodeTokensPerSecond),
    decodeTokensPerSecondMax: decodeTokensPerSecondMax && short(decodeTokensPerSecondMax),
  };
}

/** As if each had been alone, a third of its time for the prompt: the search begins there. */
function firstGuess(measured: readonly Measured[]): Point {
  let prompt = 0;
  let output = 0;
  let ms = 0;
  for (const each of measured) {
    prompt += each.promptTokens;
    output += each.outputTokens;
    ms += Math.max(1, each.totalMs);
  }
  return [Math.log((prompt * 3000) / ms), Math.log((Math.max(1, output) * 1500) / ms)];
}

interface Times {
  firstTokenMs: number;
  totalMs: number;
}

/** What the same requests take on an accelerator of this profile. */
function play(measured: readonly Measured[], profile: AcceleratorProfile): Times[] {
  const time = new VirtualTime();
  const accelerator = new Accelerator(profile, time, time, seededRandom(1));
  const times: Times[] = measured.map(() => ({ firstTokenMs: 0, totalMs: 0 }));
  let left = measured.length;
  for (const [index, { atMs, promptTokens, outputTokens }] of measured.entries()) {
    time.set(atMs, () => {
      const mine = times[index]!;
      accelerator.submit(
        { promptTokens: Math.max(1, promptTokens), outputTokens: Math.max(1, outputTokens) },
        {
          firstOnly: true,
          onToken: () => {
            mine.firstTokenMs = time.mono() - atMs;
          },
          onEnd: () => {
            mine.totalMs = time.mono() - atMs;
            left--;
          },
          onFault: () => {},
        },
      );
    });
  }
  while (left > 0 && time.nextAt !== undefined) time.run(time.nextAt - time.mono());
  return times;
}

function errorOf(measured: readonly Measured[], profile: AcceleratorProfile): number {
  const times = play(measured, profile);
  let sum = 0;
  let count = 0;
  const add = (simulated: number, real: number) => {
    sum += Math.log(Math.max(1, simulated) / Math.max(1, real)) ** 2;
    count++;
  };
  for (const [index, { firstTokenMs, totalMs }] of measured.entries()) {
    add(times[index]!.totalMs, totalMs);
    if (firstTokenMs !== undefined) add(times[index]!.firstTokenMs, firstTokenMs);
  }
  return Math.sqrt(sum / count);
}

function percentileErrors(measured: readonly Measured[], profile: AcceleratorProfile): Fit['errors'] {
  const sorted = (values: number[]) => values.sort((a, b) => a - b);
  const real = sorted(measured.map(({ totalMs }) => totalMs));
  const simulated = sorted(play(measured, profile).map(({ totalMs }) => totalMs));
  const at = (values: number[], share: number) =>
    values[Math.min(values.length - 1, Math.floor(share * values.length))]!;
  const error = (share: number) =>
    Math.round((at(simulated, share) / Math.max(1e-9, at(real, share)) - 1) * 1e4) / 1e4;
  return { p50: error(0.5), p90: error(0.9), p99: error(0.99) };
}

/** The point of least error near `start`, with Nelder and Mead's own coefficients (1, 2, 1/2, 1/2). */
function simplex(errorAt: (point: Point) => number, start: Point): { at: Point; error: number } {
  const vertex = (at: Point) => ({ at, error: errorAt(at) });
  const corners = [vertex(start)];
  for (const along of start.keys())
    corners.push(vertex(start.map((each, i) => (i === along ? each + 1 : each))));
  const last = start.length;
  for (let round = 0; round < ROUNDS * (last - 1); round++) {
    corners.sort((a, b) => a.error - b.error);
    const [best, second, worst] = [corners[0]!, corners[last - 1]!, corners[last]!];
    const centre = start.map((_, i) =>
      corners.slice(0, last).reduce((sum, { at }) => sum + at[i]! / last, 0),
    );
    const along = (by: number) => vertex(centre.map((each, i) => each + by * (worst.at[i]! - each)));
    const reflected = along(-1);
    if (reflected.error < best.error) {
      const expanded = along(-2);
      corners[last] = expanded.error < reflected.error ? expanded : reflected;
    } else if (reflected.error < second.error) corners[last] = reflected;
    else {
      const contracted = along(0.5);
      if (contracted.error < worst.error) corners[last] = contracted;
      else {
        for (let i = 1; i <= last; i++)
          corners[i] = vertex(corners[i]!.at.map((each, k) => (each + best.at[k]!) / 2));
      }
    }
  }
  corners.sort((a, b) => a.error - b.error);
  return corners[0]!;
}
