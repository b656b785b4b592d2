import { readOpenaiRequest } from '../../protocols/openai/request.ts';
import type { OipModelCall, OpenaiCall } from '../call.ts';
import { headerOf, sharedHeaders, tell, without } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { countRung } from '../ladder.ts';
import type { Path } from '../path.ts';
import { JSON_BYTES, WholeCarrier } from '../whole-carrier.ts';
import type { Part } from './contracts.ts';

export interface Member {
  x: Exchange;
  part: Part;
  joinedAt: number;
}

/**
 * One request upstream with the rows of several callers. Each gets its own rows; where the engine finds something wrong
 * with the request, or its answer cannot be taken apart, each goes by itself, so that only who is meant gets the error.
 */
export class JoinedCall extends WholeCarrier {
  readonly #members: Member[];
  readonly #onJudged: (worked: boolean) => void;

  constructor(path: Path, members: Member[], onJudged: (worked: boolean) => void) {
    const [{ x, part }] = members as [Member];
    super(path, x, x.caller.target, part.joiner.join(members.map((each) => each.part)));
    this.#members = members;
    this.#onJudged = onJudged;
  }

  start(): void {
    const { path } = this;
    const call = this.#call();
    if (!call || !this.hold(this.body.length)) {
      this.leave();
      this.#part('not-joined');
      return;
    }
    const inputs = this.#members.reduce((sum, { part }) => sum + part.count, 0);
    const cost = { tokensIn: 0, tokensOut: 0 };
    for (const { x } of this.#members) {
      cost.tokensIn += x.cost.tokensIn;
      cost.tokensOut += x.cost.tokensOut;
    }
    const carrier = this.openFor(this.#members, call, cost);
    for (const { x } of this.#members) {
      const figures = { callers: this.#members.length, inputs, waitedMs: x.waitedMs };
      path.step(x, 'plan', 'batched', figures, `routes.${x.route!.name}.batch`);
      path.deps.metrics.joined.of(x.route!.name, 'batch').add();
      x.scope.add(() => this.#left());
    }
    path.watchTime(carrier);
    path.plan(carrier, false);
  }

  #call(): OpenaiCall | OipModelCall | undefined {
    const call = this.first.call!;
    if (call.protocol === 'oip') {
      const headerLength = this.header(JSON_BYTES);
      return { ...call, headerLength, request: { id: undefined, sequence: undefined } };
    }
    const request = readOpenaiRequest(this.body);
    return 'message' in request ? undefined : { ...call, request };
  }

  protected answered(headers: HeaderList, answer: Buffer): void {
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
    for (const [at, { x, joinedAt }] of this.#members.entries()) {
      if (x.over) continue;
      if (told) countRung(this.path.deps.metrics, this.carrier!);
      told = true;
      const { body, jsonBytes: ownBytes, tokensIn } = shares[at]!;
      tell(this.path, this.carrier!, x, joinedAt + x.waitedMs);
      x.firstContentAt = this.path.deps.clock.mono();
      x.tokensIn = tokensIn;
      x.tokensOut = tokensIn === undefined ? undefined : 0;
      const framing = ownBytes === undefined ? {} : { [JSON_BYTES]: String(ownBytes) };
      const own = [...shared, ...Object.entries(framing).flat()];
      this.path.addHeaders(x, own);
      x.listener?.whole(200, { 'content-type': type, ...framing }, body);
      x.caller.respond(200, own, body);
      this.path.finish(x);
    }
    this.#onJudged(true);
  }

  protected refused(): void {
    this.#part('batch-refused');
  }

  protected tooLong(): void {
    this.#part('batch-too-long');
  }

  /** Each goes by itself. */
  #part(code: string): void {
    const members = this.#members.filter(({ x }) => !x.over);
    for (const { x } of members) {
      this.path.step(x, 'plan', code, { callers: this.#members.length }, `routes.${x.route!.name}.batch`);
    }
    this.#onJudged(false);
    for (const { x } of members) if (!x.over) this.path.plan(x, false);
  }

  /** What kept the joined request from its answer keeps each of them from it: the ladder's backends were tried for all. */
  protected failed(): void {
    const failure = this.carrier!.failure!;
    const { answers } = this.path.deps;
    for (const { x, joinedAt } of this.#members) {
      if (x.over) continue;
      tell(this.path, this.carrier!, x, joinedAt + x.waitedMs);
      x.degraded = undefined;
      const kept = x.route!.settings.ladder.some(
        (rung, at) => 'cached' in rung && answers.stale(this.path, x, at, rung.cached.staleMax),
      );
      if (!kept) this.path.refuse(x, { ...failure, phase: x.phase });
    }
  }

  #left(): void {
    if (this.#members.every(({ x }) => x.over)) this.leave();
  }
}
