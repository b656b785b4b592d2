import { priorities } from '../../kernel/priorities.ts';
import { readOpenaiRequest } from '../../protocols/openai/request.ts';
import type { OipModelCall, OpenaiCall } from '../call.ts';
import { CarrierCaller, openCarrier, sharedHeaders, tell } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { countRung } from '../ladder.ts';
import type { Path } from '../path.ts';
import type { Part } from './contracts.ts';

/** The longest answer to a joined request that is taken apart. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
/** The header that says where the JSON of a body ends, if raw tensors follow. */
const JSON_BYTES = 'inference-header-content-length';

export interface Member {
  x: Exchange;
  part: Part;
  joinedAt: number;
}

/**
 * One request upstream with the rows of several callers. Each gets its own rows; where the engine finds something wrong
 * with the request, or its answer cannot be taken apart, each goes by itself, so that only who is meant gets the error.
 */
export class JoinedCall extends CarrierCaller {
  readonly #path: Path;
  readonly #members: Member[];
  /** Where the JSON of the joined body ends, if raw tensors follow. */
  readonly #jsonBytes: number | undefined;
  readonly #onJudged: (worked: boolean) => void;
  /** An answer too long to come whole. */
  #pieces: Buffer[] | undefined;
  #headers: HeaderList = [];
  #held = 0;
  #ended = false;

  constructor(path: Path, members: Member[], onJudged: (worked: boolean) => void) {
    const { joiner } = members[0]!.part;
    const { body, jsonBytes } = joiner.join(members.map(({ part }) => part));
    super(members[0]!.x.caller.target, body);
    this.#jsonBytes = jsonBytes;
    this.#path = path;
    this.#members = members;
    this.#onJudged = onJudged;
  }

  start(): void {
    const path = this.#path;
    const first = this.#members[0]!.x;
    const call = this.#call(first);
    if (!call || !this.#hold(this.body.length)) {
      this.#part('not-joined');
      return;
    }
    const inputs = this.#members.reduce((sum, { part }) => sum + part.count, 0);
    const cost = { tokensIn: 0, tokensOut: 0 };
    for (const { x } of this.#members) {
      cost.tokensIn += x.cost.tokensIn;
      cost.tokensOut += x.cost.tokensOut;
    }
    const carrier = openCarrier(path, this, first, call, cost);
    carrier.session = undefined;
    for (const member of this.#members) {
      const { x } = member;
      if (priorities.indexOf(x.priority) < priorities.indexOf(carrier.priority))
        carrier.priority = x.priority;
      carrier.deadlineAt = Math.max(carrier.deadlineAt, x.deadlineAt);
      const figures = { callers: this.#members.length, inputs, waitedMs: x.waitedMs };
      path.step(x, 'plan', 'batched', figures, `routes.${x.route!.name}.batch`);
      path.deps.metrics.joined.of(x.route!.name, 'batch').add();
      x.scope.add(() => this.#left());
    }
    path.watchTime(carrier);
    path.plan(carrier, false);
  }

  header(name: string): string | undefined {
    const raw = this.#jsonBytes;
    if (name === 'content-type') return raw === undefined ? 'application/json' : 'application/octet-stream';
    if (name === JSON_BYTES && raw !== undefined) return String(raw);
    return name === 'openai-beta' ? this.#members[0]!.x.caller.header(name) : undefined;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    if (this.#ended) return;
    const { outcome } = this.carrier!;
    const answered = status === 200 && (outcome === 'ok' || outcome === 'degraded');
    if (answered) this.#share(headers, Buffer.from(body));
    else if (outcome === 'invalid') this.#part('batch-refused');
    else this.#fail();
  }

  open(_status: number, headers: HeaderList): void {
    this.#headers = headers;
    this.#pieces = [];
  }

  write(piece: Buffer | string): boolean {
    if (this.#ended) return true;
    const bytes = Buffer.from(piece);
    this.#pieces!.push(bytes);
    if (!this.#hold(bytes.length)) {
      this.#part('batch-too-long');
      this.#path.gone(this.carrier!);
    }
    return true;
  }

  end(): void {
    if (this.#ended) return;
    if (this.carrier!.outcome === 'failed') this.#fail();
    else this.#share(this.#headers, Buffer.concat(this.#pieces ?? []));
  }

  destroy(): void {
    if (!this.#ended) this.#fail();
  }

  #call(first: Exchange): OpenaiCall | OipModelCall | undefined {
    const call = first.call!;
    if (call.protocol === 'oip') {
      const headerLength = this.#jsonBytes === undefined ? undefined : String(this.#jsonBytes);
      return { ...call, headerLength, request: { id: undefined, sequence: undefined } };
    }
    const request = readOpenaiRequest(this.body);
    return 'message' in request ? undefined : { ...call, request };
  }

  #share(headers: HeaderList, answer: Buffer): void {
    const parts = this.#members.map(({ part }) => part);
    const ids = this.#members.map(({ x }) => x.id);
    const raw = headerOf(headers, JSON_BYTES);
    const jsonBytes = raw === undefined ? undefined : Number(raw);
    const shares = parts[0]!.joiner.split({ body: answer, jsonBytes }, parts, ids);
    if (!shares) {
      this.#part('batch-unclear');
      return;
    }
    const type = headerOf(headers, 'content-type') ?? 'application/json';
    const shared = without(sharedHeaders(headers), JSON_BYTES);
    let told = false;
    for (const [at, { x, joinedAt }] of this.#end().entries()) {
      if (x.over) continue;
      if (told) countRung(this.#path.deps.metrics, this.carrier!);
      told = true;
      const { body, jsonBytes: ownBytes, tokensIn } = shares[at]!;
      tell(this.#path, this.carrier!, x, joinedAt + x.waitedMs);
      x.firstContentAt = this.#path.deps.clock.mono();
      x.tokensIn = tokensIn;
      x.tokensOut = tokensIn === undefined ? undefined : 0;
      const framing = ownBytes === undefined ? {} : { [JSON_BYTES]: String(ownBytes) };
      const own = [...shared, ...Object.entries(framing).flat()];
      this.#path.addHeaders(x, own);
      x.listener?.whole(200, { 'content-type': type, ...framing }, body);
      x.caller.respond(200, own, body);
      this.#path.finish(x);
    }
    this.#onJudged(true);
  }

  /** Each goes by itself. */
  #part(code: string): void {
    const members = this.#end().filter(({ x }) => !x.over);
    for (const { x } of members) {
      this.#path.step(x, 'plan', code, { callers: this.#members.length }, `routes.${x.route!.name}.batch`);
    }
    this.#onJudged(false);
    for (const { x } of members) if (!x.over) this.#path.plan(x, false);
  }

  /** What kept the joined request from its answer keeps each of them from it: the ladder's backends were tried for all. */
  #fail(): void {
    const failure = this.carrier!.failure!;
    const { answers } = this.#path.deps;
    for (const { x, joinedAt } of this.#end()) {
      if (x.over) continue;
      tell(this.#path, this.carrier!, x, joinedAt + x.waitedMs);
      x.degraded = undefined;
      const kept = x.route!.settings.ladder.some(
        (rung, at) => 'cached' in rung && answers.stale(this.#path, x, at, rung.cached.staleMax),
      );
      if (!kept) this.#path.refuse(x, { ...failure, phase: x.phase });
    }
  }

  #left(): void {
    if (this.#ended || this.#members.some(({ x }) => !x.over)) return;
    this.#end();
    this.#path.gone(this.carrier!);
  }

  #hold(bytes: number): boolean {
    if (this.#held + bytes > ANSWER_BYTES_MAX || !this.#path.deps.buffers.take(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  #end(): Member[] {
    this.#ended = true;
    this.#path.deps.buffers.give(this.#held);
    this.#held = 0;
    this.#pieces = undefined;
    this.close();
    return this.#members;
  }
}

function headerOf(headers: HeaderList, name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each === name);
  return at < 0 ? undefined : headers[at + 1];
}

function without(headers: HeaderList, name: string): HeaderList {
  return headers.filter((_, i) => headers[i - (i % 2)] !== name);
}
