import { LRUCache } from 'lru-cache';
import type { Exchange, InnerSink, Path } from '../../gateway/contracts.ts';
import type { Failure } from '../../kernel/errors.ts';
import type { Priority } from '../../kernel/priorities.ts';
import type { ClassCentres, StageSettings } from '../kinds/contracts.ts';
import { askVectors, readVectors } from '../kinds/embeddings.ts';

/** Examples that are asked for at once: engines take no more of them by default. */
const TOGETHER = 32;
/** How long one such request may take, milliseconds: it is for all who come after as well. */
const ASK_MS = 30_000;
/** Sets of classes that are kept. */
const SETS_MAX = 256;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

type Found = ClassCentres | Failure;
type Waiter = (found: Found) => void;

/** Classes by name, each with its examples. */
type Examples = Readonly<Record<string, readonly string[]>>;

/**
 * What stands for the classes of stages of embeddings: the middle of the vectors of their examples. They are asked for once, of
 * the stage's own route, by whoever needs them first, and kept for everybody while the route's models stay the same.
 */
export class ClassVectors {
  readonly #sets = new LRUCache<string, ClassCentres | Learning>({ max: SETS_MAX });
  /** What they are known by, made once for each snapshot: examples are long. */
  readonly #keys = new WeakMap<StageSettings, { snapshot: unknown; route: string; key: string }>();

  /** `done` may be called before this returns; what is given back leaves: the asking itself goes on, as others will want it. */
  of(path: Path, x: Exchange, stage: StageSettings, route: string, done: Waiter): () => void {
    const { classes } = stage;
    if (!classes || Array.isArray(classes)) throw new Error('the stage has no classes with examples');
    const key = this.#keyOf(path, stage, route);
    const known = this.#sets.get(key);
    if (known && !(known instanceof Learning)) {
      done(known);
      return nothing;
    }
    const learning = known ?? new Learning(path, x, stage, route, classes);
    let leave = learning.wait((found) => {
      // What one tenant has used up is nobody else's.
      const anew = 'code' in found && found.code === 'quota_exceeded' && learning.tenant !== x.tenant;
      if (anew) leave = this.of(path, x, stage, route, done);
      else done(found);
    });
    if (!known) {
      this.#sets.set(key, learning);
      learning.start((found) => {
        if ('code' in found)
          this.#sets.delete(key); // the next one tries again
        else this.#sets.set(key, found);
      });
    }
    return () => leave();
  }

  #keyOf(path: Path, stage: StageSettings, route: string): string {
    const { snapshot } = path.deps.world;
    const known = this.#keys.get(stage);
    if (known && known.snapshot === snapshot && known.route === route) return known.key;
    const key = JSON.stringify([route, modelsOf(path, route), stage.parameters, stage.classes]);
    this.#keys.set(stage, { snapshot, route, key });
    return key;
  }
}

/** The models behind a route now: vectors of one say nothing about those of another. */
function modelsOf(path: Path, route: string): string[] {
  const targets = path.deps.world.routes.get(route)?.targets.openai ?? [];
  return targets.map(({ backend }) => `${backend.name}=${backend.settings.model}`).sort();
}

/** The examples of one set of classes, on their way to become vectors. */
class Learning {
  readonly #path: Path;
  /** For whom it is asked: who needed it first. */
  readonly tenant: string;
  readonly #priority: Priority;
  readonly #stage: StageSettings;
  readonly #route: string;
  readonly #classes: Examples;
  readonly #texts: string[];
  readonly #vectors: number[][] = [];
  readonly #waiters = new Set<Waiter>();
  #model: string | undefined;
  #over: Waiter = nothing;

  constructor(path: Path, x: Exchange, stage: StageSettings, route: string, classes: Examples) {
    this.#path = path;
    this.tenant = x.tenant;
    this.#priority = x.priority;
    this.#stage = stage;
    this.#route = route;
    this.#classes = classes;
    this.#texts = Object.values(classes).flat();
  }

  wait(waiter: Waiter): () => void {
    this.#waiters.add(waiter);
    return () => this.#waiters.delete(waiter);
  }

  start(over: Waiter): void {
    this.#over = over;
    this.#askNext();
  }

  #askNext(): void {
    const texts = this.#texts.slice(this.#vectors.length, this.#vectors.length + TOGETHER);
    const sink = new WholeAnswer();
    this.#path.ask(
      {
        ...askVectors(this.#route, texts, this.#stage.parameters),
        terms: {
          tenant: this.tenant,
          charged: 'stage',
          priority: this.#priority,
          deadlineAt: this.#path.deps.clock.mono() + ASK_MS,
          ladder: false, // another model's vectors would be of no use
          session: undefined,
          onOver: (inner) => this.#heard(inner, texts.length, sink.body),
        },
      },
      sink,
    );
  }

  #heard(inner: Exchange, count: number, body: Buffer | undefined): void {
    if (inner.outcome !== 'ok' || !body) {
      this.#end(inner.failure ?? unreadable());
      return;
    }
    const read = readVectors(body, count);
    const first = this.#vectors[0];
    const fits = read && (!first || (read.model === this.#model && read.vectors[0]!.length === first.length));
    if (!fits) {
      this.#end(unreadable());
      return;
    }
    this.#model = read.model;
    this.#vectors.push(...read.vectors);
    if (this.#vectors.length < this.#texts.length) this.#askNext();
    else this.#end({ model: this.#model, centres: centresOf(this.#classes, this.#vectors) });
  }

  #end(found: Found): void {
    this.#over(found);
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter(found);
  }
}

/** The middle of each class's examples, of vectors of length 1: each counts the same. */
function centresOf(classes: Examples, vectors: readonly number[][]): ClassCentres['centres'] {
  let at = 0;
  return Object.entries(classes).map(([name, examples]) => {
    const own = vectors.slice(at, (at += examples.length));
    const centre = new Array<number>(own[0]!.length).fill(0);
    for (const vector of own) {
      const length = Math.hypot(...vector) || 1;
      for (let i = 0; i < centre.length; i++) centre[i]! += vector[i]! / length / own.length;
    }
    return { name, vector: centre };
  });
}

/** Takes an answer in one piece or several; undefined while there is none, or where it is too long. */
class WholeAnswer implements InnerSink {
  body: Buffer | undefined;
  #pieces: Buffer[] = [];
  #bytes = 0;

  whole(_status: number, _headers: string[], body: Buffer): void {
    this.body = body;
  }

  open(): void {}

  piece(bytes: Buffer | string): boolean {
    this.#bytes += bytes.length;
    if (this.#bytes <= ANSWER_BYTES_MAX) this.#pieces.push(Buffer.from(bytes));
    return true;
  }

  end(): void {
    if (this.#bytes <= ANSWER_BYTES_MAX) this.body = Buffer.concat(this.#pieces);
  }

  broken(): void {
    this.#pieces = [];
  }
}

function unreadable(): Failure {
  return {
    code: 'backend_error',
    message: 'The engine gave no vectors for the examples of its classes that can be compared.',
    phase: 'sent',
  };
}

function nothing(): void {}
