import { DRIFT_FEATURES, type RouteSettings } from '../../config/schema/index.ts';

type DriftSettings = NonNullable<RouteSettings['drift']>;

/** What is read of a route's requests and answers. */
export interface DriftRules {
  features: ReadonlySet<string>;
  /** By the name of the tensor: its feature. */
  inputs: ReadonlyMap<string, string>;
  inputShapes: ReadonlyMap<string, string>;
  outputs: ReadonlyMap<string, string>;
  /** The output tensor with the probabilities of the classes. */
  score: string | undefined;
  /** So many answers in so many milliseconds. */
  answersMax: number;
  windowMs: number;
}

export function driftRules({ features, score, sample }: DriftSettings): DriftRules {
  const names = features.map((each) => (typeof each === 'string' ? each : each.name));
  const tensors = (kind: string) =>
    new Map(
      names.flatMap((name) =>
        name.startsWith(`${kind}:`) ? [[name.slice(kind.length + 1), name] as const] : [],
      ),
    );
  return {
    features: new Set(names.filter((name) => Object.hasOwn(DRIFT_FEATURES, name))),
    inputs: tensors('input'),
    inputShapes: tensors('inputShape'),
    outputs: tensors('output'),
    score,
    answersMax: sample.amount,
    windowMs: sample.perSeconds * 1000,
  };
}
