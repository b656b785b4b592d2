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

/**
 * Finds the profile with which the simulated accelerator takes the times that were measured: the same requests are put to
 * it at the same moments, and the rates are moved until the logarithms of the times differ least.
 * Method: the simplex search of Nelder and Mead (1965) over the logarithms of the two rates, for each size of batch.
 */
export function fitProfile(measured: readonly Measured[], batchMax: number | undefined): Fit {
  const some = measured.slice(0, REQUESTS_MAX);
  const start = firstGuess(some);
  let best: { at: [number, number]; batch: number; error: number } | undefined;
  for (const batch of batchMax === undefined ? BATCHES : [batchMax]) {
    const { at, error } = simplex((point) => errorOf(some, profileOf(point, batch)), best?.at ?? start);
    // A larger batch that explains no more is no better: what never fills it tells nothing of its size.
    if (!best || error < best.error * 0.99) best = { at, batch, error };
  }
  const profile = rounded(profileOf(best!.at, best!.batch));
  return { profile, errors: percentileErrors(some, profile), spread: best!.error };
}

function profileOf([prefill, decode]: [number, number], batchMax: number): AcceleratorProfile {
  return {
    prefillTokensPerSecond: Math.exp(prefill),
    decodeTokensPerSecond: Math.exp(decode),
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
  return {
    ...profile,
    prefillTokensPerSecond: short(profile.prefillTokensPerSecond),
    decodeTokensPerSecond: short(profile.decodeTokensPerSecond),
  };
}

/** As if each had been alone, a third of its time for the prompt: the search begins there. */
function firstGuess(measured: readonly Measured[]): [number, number] {
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

type Point = [number, number];

/** The point of least error near `start`, with Nelder and Mead's own coefficients (1, 2, 1/2, 1/2). */
function simplex(errorAt: (point: Point) => number, start: Point): { at: Point; error: number } {
  const vertex = (at: Point) => ({ at, error: errorAt(at) });
  const corners = [vertex(start), vertex([start[0] + 1, start[1]]), vertex([start[0], start[1] + 1])];
  for (let round = 0; round < ROUNDS; round++) {
    corners.sort((a, b) => a.error - b.error);
    const [best, middle, worst] = corners as [(typeof corners)[0], (typeof corners)[0], (typeof corners)[0]];
    const centre: Point = [(best.at[0] + middle.at[0]) / 2, (best.at[1] + middle.at[1]) / 2];
    const along = (by: number) =>
      vertex([centre[0] + by * (worst.at[0] - centre[0]), centre[1] + by * (worst.at[1] - centre[1])]);
    const reflected = along(-1);
    if (reflected.error < best.error) {
      const expanded = along(-2);
      corners[2] = expanded.error < reflected.error ? expanded : reflected;
    } else if (reflected.error < middle.error) corners[2] = reflected;
    else {
      const contracted = along(0.5);
      if (contracted.error < worst.error) corners[2] = contracted;
      else {
        for (const i of [1, 2]) {
          const { at } = corners[i]!;
          corners[i] = vertex([(at[0] + best.at[0]) / 2, (at[1] + best.at[1]) / 2]);
        }
      }
    }
  }
  corners.sort((a, b) => a.error - b.error);
  return corners[0]!;
}
