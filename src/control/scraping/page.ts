import type { GaugeNames } from '../../backends/contracts.ts';
import type { GaugeReading } from '../../links/messages.ts';
import { type Sample, samplesOf } from './samples.ts';

/** Every process of one replica tells the same load: vLLM's and SGLang's ranks of tensor, pipeline and expert parallelism. */
const RANK_LABELS = ['tp_rank', 'pp_rank', 'moe_ep_rank', 'pid'];
/** Series with one of these break down a series without it (SGLang). */
const PART_LABELS = ['priority'];

/**
 * What a page of metrics says of one model's load, by the names that its engine may use: the first of them that is on the
 * page counts, so that an engine that has renamed a gauge is read before and after. What is not there, not a number or
 * impossible is absent, and never zero. undefined: none of it is there.
 */
export function readPage(page: string, names: GaugeNames, model: string): GaugeReading | undefined {
  const waiting = first(names.waiting, (name) => total(page, name, model, isCount));
  const running = first(names.running, (name) => total(page, name, model, isCount));
  const cacheUsed = first(names.cache, (name) => greatest(page, name, model, isShare));
  if (waiting === undefined && running === undefined && cacheUsed === undefined) return undefined;
  return {
    ...(waiting !== undefined && { waiting }),
    ...(running !== undefined && { running }),
    ...(cacheUsed !== undefined && { cacheUsed }),
  };
}

const isCount = (value: number): boolean => value >= 0 && value < Number.POSITIVE_INFINITY;
const isShare = (value: number): boolean => value >= 0 && value <= 1;

function first(names: readonly string[], read: (name: string) => number | undefined): number | undefined {
  for (const name of names) {
    const value = read(name);
    if (value !== undefined) return value;
  }
  return undefined;
}

type Holds = (value: number) => boolean;

/** Replicas behind one address (data parallelism) add up; the ranks of one replica do not. */
function total(page: string, name: string, model: string, holds: Holds): number | undefined {
  const series = seriesOf(page, name, model);
  if (series.length === 0 || !series.every(({ value }) => holds(value))) return undefined;
  const replicas = new Map<string, number>();
  for (const { labels, value } of series) {
    const replica = [...labels]
      .filter(([label]) => !RANK_LABELS.includes(label))
      .map((pair) => pair.join('='))
      .sort()
      .join();
    replicas.set(replica, Math.max(value, replicas.get(replica) ?? 0));
  }
  return [...replicas.values()].reduce((sum, value) => sum + value, 0);
}

function greatest(page: string, name: string, model: string, holds: Holds): number | undefined {
  const values = seriesOf(page, name, model).map(({ value }) => value);
  return values.length > 0 && values.every(holds) ? Math.max(...values) : undefined;
}

/** The series of `name`, which may name values of labels as `NAME{LABEL=VALUE}`, that are about this model. */
function seriesOf(page: string, name: string, model: string): Sample[] {
  const [bare = '', label, wanted] = name.split(/[{=}]/);
  let series = samplesOf(page, bare);
  if (label !== undefined) series = series.filter(({ labels }) => labels.get(label) === wanted);
  const whole = series.filter(({ labels }) => PART_LABELS.every((part) => !labels.get(part)));
  return ofModel(whole.length > 0 ? whole : series, model);
}

/**
 * An engine of one model may name it otherwise than callers do (by an alias, or by the model below an adapter): where all
 * series carry one `model_name`, they are meant. Servers of many models say `model`, and mean just that one.
 */
function ofModel(series: readonly Sample[], model: string): Sample[] {
  const named = ({ labels }: Sample) => labels.get('model_name') ?? labels.get('model');
  const own = series.filter((sample) => named(sample) === model);
  if (own.length > 0) return own;
  const names = new Set(series.map(({ labels }) => labels.get('model_name')));
  return names.size === 1 && series.every(({ labels }) => !labels.has('model')) ? [...series] : [];
}
