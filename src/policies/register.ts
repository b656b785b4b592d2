import type { Random } from '../kernel/random.ts';
import { type ArmInput, canaryArm } from './canary-arm/index.ts';
import { coldStart, type StartInput } from './cold-start/index.ts';
import { type HoldRead, judge as judgeHold, LADDER_HOLD } from './ladder-hold/index.ts';
import { leastCostOfTwo, restore } from './least-cost-of-two/index.ts';
import { type PrefixInput, prefixAffinity } from './prefix-affinity/index.ts';
import { type RetryTimingInput, retryTiming } from './retry-timing/index.ts';
import { type TargetInput, targetByWeight } from './target-by-weight/index.ts';
import { type TierInput, tierChoice } from './tier-choice/index.ts';
import { type BucketInput, replayBucket, TOKEN_BUCKET } from './token-bucket/index.ts';

/** A policy whose recorded decisions can be taken again. */
export interface Replayable {
  version: number;
  /** Decides again on what was read then. */
  replay(input: unknown, random: Random): unknown;
}

/** By name. A record names its policy as `NAME@VERSION`. */
export const replayable: ReadonlyMap<string, Replayable> = new Map([
  [
    retryTiming.name,
    {
      version: retryTiming.version,
      replay: (input, random) => retryTiming.decide(input as RetryTimingInput, 0, random),
    },
  ],
  [
    targetByWeight.name,
    {
      version: targetByWeight.version,
      replay: (input, random) => targetByWeight.decide(input as TargetInput, 0, random),
    },
  ],
  [
    canaryArm.name,
    {
      version: canaryArm.version,
      replay: (input, random) => canaryArm.decide(input as ArmInput, 0, random),
    },
  ],
  [
    tierChoice.name,
    {
      version: tierChoice.version,
      replay: (input, random) => tierChoice.decide(input as TierInput, 0, random),
    },
  ],
  [
    prefixAffinity.name,
    {
      version: prefixAffinity.version,
      replay: (input, random) => prefixAffinity.decide(input as PrefixInput, 0, random),
    },
  ],
  [
    leastCostOfTwo.name,
    {
      version: leastCostOfTwo.version,
      replay: (input, random) => leastCostOfTwo.decide(restore(input), 0, random),
    },
  ],
  [
    coldStart.name,
    {
      version: coldStart.version,
      replay: (input, random) => coldStart.decide(input as StartInput, 0, random),
    },
  ],
  [LADDER_HOLD.name, { version: LADDER_HOLD.version, replay: (input) => judgeHold(input as HoldRead) }],
  [
    TOKEN_BUCKET.name,
    { version: TOKEN_BUCKET.version, replay: (input) => replayBucket(input as BucketInput) },
  ],
] satisfies [string, Replayable][]);
