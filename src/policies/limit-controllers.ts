import { AimdLimit } from './limit-aimd/index.ts';
import type { LimitController } from './limit-contract.ts';
import { Gradient2Limit } from './limit-gradient2/index.ts';
import { KneeLimit } from './limit-knee/index.ts';
import { TargetLimit } from './limit-target/index.ts';
import { VegasLimit } from './limit-vegas/index.ts';

/** Controllers of limits by the name that `limits.adaptive` gives them. */
const CONTROLLERS = {
  knee: () => new KneeLimit(),
  target: () => new TargetLimit(),
  gradient2: () => new Gradient2Limit(),
  vegas: () => new VegasLimit(),
  aimd: () => new AimdLimit(),
} satisfies Record<string, () => LimitController>;

export type ControllerName = keyof typeof CONTROLLERS;

export function limitController(name: ControllerName): LimitController {
  return CONTROLLERS[name]();
}
