import type { Exchange } from '../gateway/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { type Asked, type AskHost, Asking } from './asking.ts';
import type { StageFilling } from './filling.ts';
import { CONCURRENCY_USUAL, FanOut } from './flow/fan-out.ts';
import { standIn } from './kinds/classes.ts';
import type { StageItem, StageValue } from './kinds/contracts.ts';
import type { PlannedStage } from './plan.ts';
import { settingOf, statusOf, tell, tellWay } from './record.ts';
import type { CallEnd } from './stage-call.ts';
import { TextWithMembers } from './templates.ts';

/** Items that failed are told one by one up to so many; of the others there is the number. */
const TOLD_MAX = 20;

export interface EachOptions {
  host: AskHost;
  stage: PlannedStage;
  items: readonly StageItem[];
  filling: StageFilling;
  startedAt: number;
  dueAt: number;
  /** Whether something may stand in for an item that failed so. */
  mayStandIn(failure: Failure): boolean;
  done(end: EachEnd): void;
}

/** What asking for every item came to. */
export interface EachEnd {
  value: StageValue;
  /** An item failed without a way out, and the stage with it. */
  failure: Failure | undefined;
  labels: readonly string[];
  /** Of the answers that the value was read from. */
  bytes: number;
  tokensIn: number;
  tokensOut: number;
  asked: number;
  failed: number;
}

/** What one item came to; undefined where it is left out. */
type ItemEnd = StageValue | undefined;

/** A stage with `each`: its route is asked once for every item, a few at once, and each item has its own way out. */
export class EachRun {
  readonly #options: EachOptions;
  readonly #fan: FanOut<ItemEnd>;
  readonly #asking = new Map<number, Asking>();
  readonly #labels = new Set<string>();
  #failure: Failure | undefined;
  #bytes = 0;
  #tokensIn = 0;
  #tokensOut = 0;
  #asked = 0;
  #failed = 0;

  constructor(options: EachOptions) {
    this.#options = options;
    const { concurrency = CONCURRENCY_USUAL } = options.stage.settings;
    this.#fan = new FanOut(
      options.items.length,
      concurrency,
      (index, done) => this.#begin(index, done),
      () => this.#end(),
    );
  }

  /** `done` may be called before this returns. */
  start(): void {
    this.#fan.start();
  }

  /** Nobody wants it any more. What is given back are the requests that were on their way. */
  cancel(): Exchange[] {
    const running = [...this.#asking.values()];
    this.#asking.clear();
    this.#fan.cut();
    return running.flatMap((asking) => asking.cancel() ?? []);
  }

  #begin(index: number, done: (end: ItemEnd) => void): () => void {
    this.#ask(index, this.#options.stage.settings.route!, false, done);
    return () => this.#asking.get(index)?.cancel();
  }

  #ask(index: number, route: string, rerouted: boolean, done: (end: ItemEnd) => void): void {
    const { host, stage, items, filling, startedAt, dueAt } = this.#options;
    const { length } = items;
    const item = items[index]!;
    const loop = { index: index + 1, index0: index, length, first: index === 0, last: index === length - 1 };
    const asking = new Asking({
      host,
      stage,
      route,
      filling: filling.with({ item: new TextWithMembers(item.text, item), loop }),
      startedAt,
      dueAt,
      taker: undefined,
      done: (asked) => {
        this.#asking.delete(index);
        this.#count(asked.end);
        if (asked.value) {
          const rung = rerouted ? 'route' : asked.end?.inner?.degraded;
          if (rung !== undefined) this.#labels.add(rung);
          done(asked.value);
        } else this.#failedOne(index, asked, rerouted, done);
      },
    });
    this.#asking.set(index, asking);
    asking.start();
  }

  #count(end: CallEnd | undefined): void {
    const { x } = this.#options.host;
    if (!end) return;
    this.#asked++;
    this.#bytes += end.body.length;
    if (!end.inner) return;
    tellWay(x, this.#options.stage, end.inner);
    x.attempts += end.inner.attempts;
    this.#tokensIn += end.inner.tokensIn ?? 0;
    this.#tokensOut += end.inner.tokensOut ?? 0;
  }

  #failedOne(
    index: number,
    { failure }: Extract<Asked, { failure: Failure }>,
    rerouted: boolean,
    done: (end: ItemEnd) => void,
  ): void {
    const { host, stage } = this.#options;
    const { onFailure } = stage.settings;
    this.#failed++;
    const wayOut = onFailure !== 'fail' && !rerouted && this.#options.mayStandIn(failure);
    const then = !wayOut ? 'fail' : typeof onFailure === 'string' ? onFailure : Object.keys(onFailure)[0]!;
    const figures = { item: index + 1, code: failure.code, status: statusOf(failure), then };
    if (this.#failed <= TOLD_MAX || !wayOut) {
      tell(host.path, host.x, stage, 'item-failed', figures, settingOf(host.x, stage, 'onFailure'));
    }
    if (!wayOut) {
      this.#failure = failure;
      for (const inner of this.cancel()) tellWay(host.x, stage, inner);
      this.#end();
    } else if (onFailure === 'skip') {
      this.#labels.add('skip');
      done(undefined);
    } else if ('use' in onFailure) {
      this.#labels.add('use');
      done(standIn(stage.settings, onFailure.use));
    } else this.#ask(index, onFailure.route, true, done);
  }

  #end(): void {
    this.#options.done({
      value: this.#value(),
      failure: this.#failure,
      labels: [...this.#labels],
      bytes: this.#bytes,
      tokensIn: this.#tokensIn,
      tokensOut: this.#tokensOut,
      asked: this.#asked,
      failed: this.#failed,
    });
  }

  /** The items in the order of the list, without those that were left out. */
  #value(): StageValue {
    const items: StageItem[] = [];
    const vectors: (readonly number[])[] = [];
    for (const [index, value] of this.#fan.results.entries()) {
      if (!value) continue;
      items.push(this.#itemOf(this.#options.items[index]!, value));
      const vector = value.vectors?.[0];
      if (vector) vectors.push(vector);
    }
    const text = items.map((item) => item.text).join('\n');
    const all =
      vectors.length === items.length &&
      (items.length > 0 || this.#options.stage.kind!.name === 'embeddings');
    return all ? { text, items, vectors } : { text, items };
  }

  /** A generated text takes the item's place; a class, a score or a vector leaves it what it was. */
  #itemOf(item: StageItem, { text, class: name, score, json }: StageValue): StageItem {
    const { kind } = this.#options.stage;
    const generates = kind!.name === 'chat' || kind!.name === 'completions' || text !== '';
    return {
      ...item,
      ...(generates && name === undefined && { text, input: item.text }),
      ...(name !== undefined && { class: name }),
      ...(score !== undefined && { score }),
      ...(json !== undefined && { json }),
    };
  }
}
