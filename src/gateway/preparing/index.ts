import { type Failure, invalidRequest } from '../../kernel/errors.ts';
import type { TimerHandle } from '../../kernel/timers.ts';
import type {
  TokenizeFailure,
  TokenizerFile,
  TokenizerFiles,
  TokenizerPool,
} from '../../pipelines/contracts.ts';
import { scanMembers } from '../../protocols/json-members.ts';
import { readOpenaiRequest } from '../../protocols/openai/request.ts';
import { likeKey } from '../batching/index.ts';
import { replaced } from '../batching/pieces.ts';
import type { Exchange } from '../exchange.ts';
import { wrongProtocol } from '../failures.ts';
import { descend } from '../ladder.ts';
import type { Path } from '../path.ts';
import { armKey } from '../release/arms.ts';
import { Company } from '../release/company.ts';
import { type Asked, type BadAsk, readEmbeddings, readPrompts, readTexts } from './asked.ts';
import { PreparedBatch } from './batch.ts';
import { Former } from './former.ts';
import { Member, type Row } from './member.ts';
import type { PrepareRules } from './rules.ts';

/** No language has so many characters in a token: a longer text is refused, or cut, unread. */
const TOKEN_CHARACTERS_MAX = 64;
/** What a text's tokens need beside their ids, in bytes. */
const ROW_BYTES = 64;

/** Requests whose texts become tokens here, and go upstream in batches of like length. */
export class Preparing {
  readonly #pool: TokenizerPool;
  readonly #files: TokenizerFiles;
  /** By rules, which are another object in each snapshot. */
  readonly #groups = new WeakMap<PrepareRules, Map<string, Group>>();
  readonly #company = new Company();

  constructor({ pool, files }: { pool: TokenizerPool; files: TokenizerFiles }) {
    this.#pool = pool;
    this.#files = files;
  }

  /** False when the request goes as it is. */
  take(path: Path, x: Exchange, rules: PrepareRules): boolean {
    const call = x.call!;
    if (call.kind === 'completions' && rules.to === 'ids') return this.#takePrompts(path, x, rules);
    let asked: Asked | BadAsk | undefined;
    if (call.kind === 'embeddings') asked = readEmbeddings(x.caller.body, rules.to === 'tensors');
    else if (call.protocol === 'oip' && call.kind === 'infer' && rules.to === 'tensors')
      asked = readTexts(x.caller.body, call.headerLength);
    else if (call.protocol === 'openai' && rules.to === 'tensors') {
      path.refuse(x, wrongProtocol(call));
      return true;
    }
    if (!asked) return false;
    if ('message' in asked) path.refuse(x, invalidRequest(asked.message, asked.param));
    else this.#takeTexts(path, x, rules, asked);
    return true;
  }

  #takeTexts(path: Path, x: Exchange, rules: PrepareRules, asked: Asked): void {
    const texts = asked.inputs.filter((each) => typeof each === 'string');
    this.#tokenize(path, x, rules, texts, (rows) => {
      let next = 0;
      const ids = asked.inputs.map((each) =>
        typeof each === 'string' ? rows[next++]! : Int32Array.from(each),
      );
      const own = rules.overlong === 'cut' ? ids.map((row) => row.subarray(0, rules.tokensMax)) : ids;
      const longest = own.reduce((most, { length }) => Math.max(most, length), 0);
      if (longest > rules.tokensMax) path.refuse(x, tooLong(rules.tokensMax, longest));
      else this.#group(path, x, rules, asked).add(x, asked, own);
    });
  }

  /** A prompt goes by itself: engines that generate form batches of their own, token by token. */
  #takePrompts(path: Path, x: Exchange, rules: PrepareRules): boolean {
    const { body } = x.caller;
    const scanned = scanMembers(body, 0, body.length, ['prompt']);
    if (typeof scanned === 'string' || scanned.members.length !== 1) return false;
    const [prompt] = scanned.members;
    const value: unknown = JSON.parse(body.toString('utf8', prompt!.start, prompt!.end));
    const texts = readPrompts(value);
    if (!texts) return false;
    this.#tokenize(path, x, rules, texts, (rows) => {
      const longest = rows.reduce((most, { length }) => Math.max(most, length), 0);
      if (longest > rules.tokensMax) {
        path.refuse(x, tooLong(rules.tokensMax, longest, 'prompt'));
        return;
      }
      const ids = rows.map((row) => `[${row.join(',')}]`);
      const made = replaced(body, new Map([[prompt!, Array.isArray(value) ? `[${ids}]` : ids[0]!]]));
      const request = readOpenaiRequest(made);
      const { buffers } = path.deps;
      if ('message' in request || !buffers.take(made.length)) {
        path.start(x); // as text it is right as well
        return;
      }
      x.scope.add(() => buffers.give(made.length));
      const tokensIn = rows.reduce((sum, { length }) => sum + length, 0);
      x.fitted = x.targets.map(({ name, backend }) => ({
        backend: name,
        settings: backend.settings,
        body: made,
        request,
        tokensIn,
      }));
      path.start(x);
    });
    return true;
  }

  #tokenize(
    path: Path,
    x: Exchange,
    rules: PrepareRules,
    texts: readonly string[],
    done: (rows: readonly Int32Array[]) => void,
  ): void {
    const { clock } = path.deps;
    const startedAt = clock.mono();
    const name = x.route!.name;
    const tokenizer = this.#tokenizer(rules);
    if (!tokenizer) {
      this.#fail(path, x, { failed: 'unreadable', message: 'its tokenizer is not here yet' });
      return;
    }
    const charactersMax = rules.tokensMax * TOKEN_CHARACTERS_MAX;
    const tooBig = texts.find(({ length }) => length > charactersMax);
    if (tooBig !== undefined && rules.overlong === 'refuse') {
      path.refuse(
        x,
        tooLong(rules.tokensMax, undefined, x.call!.kind === 'completions' ? 'prompt' : 'input'),
      );
      return;
    }
    path.watchTime(x);
    const cancel = this.#pool.tokenize(
      {
        tokenizer,
        texts: tooBig === undefined ? texts : texts.map((text) => text.slice(0, charactersMax)),
        specials: true,
        want: 'ids',
        cutAt: rules.overlong === 'cut' ? rules.tokensMax : undefined,
        rank: x.rank,
        deadlineAt: x.deadlineAt,
      },
      (result) => {
        if (x.over) return;
        if ('failed' in result) {
          this.#fail(path, x, result);
          return;
        }
        const tokens = result.counts.reduce((sum, count) => sum + count, 0);
        const figures = { texts: texts.length, tokens, tookMs: round(clock.mono() - startedAt) };
        path.step(x, 'plan', 'prepared', figures, `routes.${name}.prepare`);
        done(result.ids);
      },
    );
    x.scope.add(cancel);
  }

  #tokenizer({ from }: PrepareRules): TokenizerFile | undefined {
    return 'model' in from ? this.#files.ofModel(from.model) : this.#files.ofFile(from.file);
  }

  #fail(path: Path, x: Exchange, { failed, message }: TokenizeFailure): void {
    const name = x.route!.name;
    const figures = { waiting: this.#pool.waiting, running: this.#pool.running, why: message };
    const setting = failed === 'full' ? 'gateway.preprocessing.queueMax' : `routes.${name}.prepare`;
    path.step(x, 'plan', `not-prepared-${failed}`, figures, setting);
    x.shedFor =
      failed === 'full' ? 'preprocessing-full' : failed === 'late' ? 'would-miss-deadline' : undefined;
    x.failure =
      failed === 'broken'
        ? { code: 'backend_error', message: `The texts could not be prepared: ${message}.`, phase: 'queued' }
        : {
            code: 'overloaded',
            message: `The texts for '${name}' cannot be prepared now: ${message}.`,
            phase: 'before-queue',
            retryAfterSeconds: 1,
          };
    descend(path, x);
  }

  #group(path: Path, x: Exchange, rules: PrepareRules, { key }: Asked): Group {
    let groups = this.#groups.get(rules);
    if (!groups) {
      groups = new Map();
      this.#groups.set(rules, groups);
    }
    const like = likeKey(x, key, rules.acrossTenants);
    this.#company.meets(like, x);
    const whole = `${armKey(x)}\n${like}`;
    let group = groups.get(whole);
    if (!group) {
      const own = groups;
      const made = new Group(path, x.route!.name, rules, () => {
        if (own.get(whole) === made) own.delete(whole);
      });
      groups.set(whole, made);
      group = made;
    }
    return group;
  }
}

/** Texts that may go upstream together, and the batches of them that are on their way. */
class Group {
  readonly #path: Path;
  readonly #rules: PrepareRules;
  readonly #former: Former<Row>;
  readonly #batches = new Set<PreparedBatch>();
  readonly #onEmpty: () => void;
  readonly #route: string;
  #timer: TimerHandle;
  /**
   * How far turns have come, in tokens: each request goes on from here by its own, so that those who wait get the same, and a long
   * list holds up nobody (self-clocked fair queueing: Golestani 1994).
   */
  #turn = 0;

  constructor(path: Path, route: string, rules: PrepareRules, onEmpty: () => void) {
    this.#route = route;
    this.#path = path;
    this.#rules = rules;
    this.#former = new Former(rules);
    this.#onEmpty = onEmpty;
  }

  add(x: Exchange, asked: Asked, ids: readonly Int32Array[]): void {
    const now = this.#path.deps.clock.mono();
    const tokens = ids.map(({ length }) => length);
    const member = new Member(this.#path, x, asked, tokens, (over) => this.#left(over));
    const bytes = tokens.reduce((sum, count) => sum + 4 * count + ROW_BYTES, 0);
    if (!member.hold(bytes)) {
      member.fail(
        { code: 'overloaded', message: 'There is no room for the tokens of this request.', phase: 'queued' },
        'buffers-full',
      );
      return;
    }
    const half = now + (x.deadlineAt - now) / 2;
    const dueAt = Math.min(now + this.#rules.delay, half);
    let turn = this.#turn;
    for (const [at, row] of ids.entries()) {
      turn += row.length;
      this.#former.add({
        member,
        at,
        ids: row,
        tokens: row.length,
        dueAt,
        lastAt: half,
        turn,
        joinedAt: now,
      });
    }
    this.#pump();
  }

  #send(rows: readonly Row[]): void {
    const batch = new PreparedBatch(this.#path, this.#rules, rows, {
      onOver: (over) => {
        this.#batches.delete(over);
        this.#pumpSoon();
      },
      again: (own) => this.#send(own),
    });
    this.#turn = Math.max(this.#turn, rows[0]!.turn);
    this.#batches.add(batch);
    batch.start();
  }

  /** Batches that may leave do. */
  #pump(): void {
    const now = this.#path.deps.clock.mono();
    for (let rows = this.#next(now); rows; rows = this.#next(now)) this.#send(rows);
    this.#watch(now);
    this.#endIfEmpty();
  }

  #next(now: number): Row[] | undefined {
    return this.#former.next(now, this.#isFree);
  }

  /** Whether another batch may go upstream before it has to; the others wait here, where later ones can still overtake them. */
  get #isFree(): boolean {
    const route = this.#path.deps.world.routes.get(this.#route);
    const targets = route?.targets[this.#rules.to === 'ids' ? 'openai' : 'oip'] ?? [];
    const endpoints = targets.reduce((sum, { backend }) => sum + backend.endpoints.length, 0);
    return this.#batches.size < this.#rules.inflightMax * Math.max(1, endpoints);
  }

  /** Not in the midst of giving answers. */
  #pumpSoon(): void {
    const { timers } = this.#path.deps;
    timers.clear(this.#timer);
    this.#timer = timers.set(0, () => this.#pump());
  }

  #watch(now: number): void {
    const { timers } = this.#path.deps;
    timers.clear(this.#timer);
    const dueAt = this.#former.dueAt(this.#isFree);
    if (dueAt === Number.POSITIVE_INFINITY) return;
    this.#timer = timers.set(Math.max(0, dueAt - now), () => this.#pump());
  }

  /** A caller wants nothing any more: none of its texts goes, and no batch that is only for it. */
  #left(member: Member): void {
    this.#former.remove((row) => row.member === member);
    for (const batch of this.#batches) batch.left();
    this.#pumpSoon();
  }

  #endIfEmpty(): void {
    if (this.#former.count === 0 && this.#batches.size === 0) this.#onEmpty();
  }
}

function tooLong(tokensMax: number, tokens: number | undefined, param = 'input'): Failure {
  const asked = tokens === undefined ? 'more' : `${tokens} tokens`;
  return invalidRequest(
    `This model's maximum context length is ${tokensMax} tokens, however you requested ${asked}. Please reduce your ${param}.`,
    param,
  );
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
