import type { Failure } from '../../kernel/errors.ts';
import { type Member as JsonMember, scanMembers } from '../../protocols/json-members.ts';
import { readInferOutputs, type Tensor } from '../../protocols/oip/tensors.ts';
import { readOpenaiRequest } from '../../protocols/openai/request.ts';
import type { Framed } from '../batching/contracts.ts';
import { readRows, renumbered } from '../batching/embedding-rows.ts';
import { hasTwice, withMembers } from '../batching/pieces.ts';
import type { OipModelCall, OpenaiCall } from '../call.ts';
import { headerOf, sharedHeaders } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Path } from '../path.ts';
import { JSON_BYTES, WholeCarrier } from '../whole-carrier.ts';
import { answerOf } from './answer.ts';
import type { Asked } from './asked.ts';
import type { Frame, Member, Row, RowAnswer } from './member.ts';
import type { PrepareRules } from './rules.ts';
import { rawRowsOf, tensorBody, vectorsOf } from './tensors.ts';

interface BatchHooks {
  onOver: (batch: PreparedBatch) => void;
  /** Sends rows again, by themselves. */
  again: (rows: readonly Row[]) => void;
}

/** Tokens of several texts, of one caller or of several, on their way upstream as one request. */
export class PreparedBatch extends WholeCarrier {
  readonly rows: readonly Row[];
  readonly #rules: PrepareRules;
  readonly #members: readonly Member[];
  readonly #hooks: BatchHooks;

  constructor(path: Path, rules: PrepareRules, rows: readonly Row[], hooks: BatchHooks) {
    const { asked, x } = rows[0]!.member;
    super(path, x, asked.infer ? x.caller.target : '/v1/embeddings', bodyOf(rows, rules));
    this.rows = rows;
    this.#rules = rules;
    this.#members = [...new Set(rows.map(({ member }) => member))];
    this.#hooks = hooks;
  }

  start(): void {
    const { path, first } = this;
    const call = this.#call(first.route!.name);
    if (!this.hold(this.body.length)) {
      this.#failAll(noBuffers(), 'buffers-full');
      this.leave();
      return;
    }
    const tokens = this.rows.reduce((sum, row) => sum + row.tokens, 0);
    const longest = Math.max(...this.rows.map((row) => row.tokens));
    const carrier = this.openFor(this.#members, call, { tokensIn: tokens, tokensOut: 0 });
    // A rung may have another tokenizer, for which these ids mean something else: each caller walks the ladder with its own text.
    carrier.terms = {
      tenant: first.tenant,
      charged: 'request',
      priority: first.priority,
      deadlineAt: undefined,
      ladder: false,
      session: undefined,
    };
    const { clock, metrics } = path.deps;
    const padded = longest * this.rows.length;
    const figures = { callers: this.#members.length, texts: this.rows.length, tokens, padded };
    path.step(carrier, 'plan', 'prepared-batch', figures, `routes.${first.route!.name}.prepare`);
    metrics.preparedTokens.of(first.route!.name, 'text').add(tokens);
    metrics.preparedTokens.of(first.route!.name, 'padding').add(padded - tokens);
    metrics.preparedBatches.of(first.route!.name).add();
    const now = clock.mono();
    for (const row of this.rows) row.member.sent(now, row.joinedAt);
    path.watchTime(carrier);
    path.plan(carrier, false);
  }

  /** A caller wants nothing any more: when none does, nor does the batch. */
  left(): void {
    if (this.#members.every(({ over }) => over)) {
      this.leave();
      this.#hooks.onOver(this);
    }
  }

  protected answered(headers: HeaderList, body: Buffer): void {
    this.#hooks.onOver(this);
    const read = this.#rules.to === 'ids' ? this.#readJson(headers, body) : this.#readTensors(headers, body);
    if (typeof read === 'string') {
      this.#failAll({ code: 'backend_error', message: read, phase: 'sent' }, undefined);
      return;
    }
    for (const member of this.#members) if (!member.over) member.hear(this.carrier!);
    for (const [index, { member, at }] of this.rows.entries()) {
      if (member.over) continue;
      const answer = read.rows[index]!;
      // What is held of a text until the others of its caller are back.
      if (!member.hold(bytesOf(answer))) {
        member.fail(noBuffers(), 'buffers-full');
        continue;
      }
      const all = member.took(at, answer);
      if (all) answerOf(member, all, read.frame, this.carrier!);
    }
  }

  /** Whom it is meant for is not known, so that each caller's texts are asked for apart. */
  protected refused(status: number, headers: HeaderList, body: Buffer): void {
    this.#hooks.onOver(this);
    const wanted = this.#members.filter(({ over }) => !over);
    for (const member of wanted) member.hear(this.carrier!);
    if (this.#members.length > 1) {
      for (const member of wanted) {
        const own = this.rows.filter((row) => row.member === member);
        this.#hooks.again(own);
      }
      return;
    }
    const [member] = wanted;
    if (!member) return;
    if (this.#rules.to === 'ids') {
      member.respondRefused(status, sharedHeaders(headers), body);
    } else {
      const message = oipMessage(body) ?? `The engine refused the tensors with ${status}.`;
      member.refuse({ code: 'invalid_request', message, phase: 'sent', status, shouldRetry: false });
    }
  }

  protected failed(): void {
    this.#hooks.onOver(this);
    const { failure, shedFor } = this.carrier!;
    this.#failAll(failure!, shedFor);
  }

  protected tooLong(): void {
    this.#hooks.onOver(this);
    this.#failAll(noBuffers(), 'buffers-full');
  }

  #failAll(failure: Failure, shedFor: string | undefined): void {
    for (const member of this.#members) {
      if (member.over) continue;
      if (this.carrier) member.hear(this.carrier);
      member.fail(failure, shedFor);
    }
  }

  #call(route: string): OpenaiCall | OipModelCall {
    const first = this.first.call!;
    if (this.#rules.to === 'tensors') {
      return {
        protocol: 'oip',
        kind: 'infer',
        route,
        stream: false,
        version: first.protocol === 'oip' ? first.version : undefined,
        headerLength: String(this.jsonBytes),
        request: { id: undefined, sequence: undefined },
      };
    }
    const request = readOpenaiRequest(this.body);
    if ('message' in request) throw new Error(`a prepared request cannot be read: ${request.message}`);
    return { protocol: 'openai', kind: 'embeddings', path: '/embeddings', route, stream: false, request };
  }

  #readJson(headers: HeaderList, body: Buffer): { rows: RowAnswer[]; frame: Frame } | string {
    const scanned = scanMembers(body);
    const unclear = 'The engine answered with something that holds no embedding for each text.';
    if (typeof scanned === 'string' || hasTwice(scanned.members)) return unclear;
    const data = scanned.members.find(({ key }: JsonMember) => key === 'data');
    const rows = data && readRows(body, data, this.rows.length);
    if (!rows) return unclear;
    return {
      rows: rows.map((row, index) => renumbered(body, row, this.rows[index]!.at)),
      frame: { headers: sharedHeaders(headers), document: body, outputs: [] },
    };
  }

  #readTensors(headers: HeaderList, body: Buffer): { rows: RowAnswer[]; frame: Frame } | string {
    const outputs = readInferOutputs(body, headerOf(headers, JSON_BYTES));
    if (typeof outputs === 'string') return `The engine's answer cannot be read: ${outputs}.`;
    const { infer } = this.#members[0]!.asked;
    const wanted = wantedOutputs(infer, this.#rules);
    const chosen = wanted
      ? wanted.map((name) => outputs.find((each) => each.name === name))
      : infer
        ? outputs
        : outputs.slice(0, 1);
    if (chosen.length === 0 || !chosen.every((each): each is Tensor => each !== undefined)) {
      return "The engine's answer has not the outputs that were asked for.";
    }
    const frame: Frame = { headers: sharedHeaders(headers), document: undefined, outputs: [] };
    if (!infer) {
      const vectors = vectorsOf(chosen[0]!, this.#lengths, this.#rules);
      return typeof vectors === 'string'
        ? `The engine's answer is unclear: ${vectors}.`
        : { rows: vectors, frame };
    }
    const perOutput = chosen.map((each) => this.#inferRows(each));
    if (!perOutput.every((each) => typeof each !== 'string')) {
      return `The engine's answer is unclear: ${perOutput.find((each) => typeof each === 'string')}.`;
    }
    return {
      rows: this.rows.map((_, index) => perOutput.map((each) => each.rows[index]!)),
      frame: {
        ...frame,
        outputs: chosen.map(({ name, datatype }, at) => ({ name, datatype, row: perOutput[at]!.row })),
      },
    };
  }

  /** Outputs with a row for each token are pooled: texts of other batches have other lengths. */
  #inferRows(output: Tensor): { rows: Buffer[]; row: number[] } | string {
    if (output.shape.length === 3 && output.datatype === 'FP32') {
      const vectors = vectorsOf(output, this.#lengths, this.#rules);
      if (typeof vectors === 'string') return vectors;
      return {
        rows: vectors.map(({ buffer, byteOffset, byteLength }) =>
          Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength),
        ),
        row: [output.shape[2]!],
      };
    }
    const rows = rawRowsOf(output, this.rows.length);
    return rows
      ? { rows, row: output.shape.slice(1) }
      : `the output '${output.name}' has no row for each of ${this.rows.length} texts`;
  }

  get #lengths(): number[] {
    return this.rows.map(({ tokens }) => tokens);
  }
}

function bodyOf(rows: readonly Row[], rules: PrepareRules): Framed {
  const { rest, infer } = rows[0]!.member.asked;
  if (rules.to === 'tensors') {
    return tensorBody(
      rows.map(({ ids }) => ids),
      rules,
      wantedOutputs(infer, rules),
    );
  }
  const inputs = rows.map(({ ids }) => `[${ids.join(',')}]`).join(',');
  return { body: Buffer.from(withMembers(rest, `"input":[${inputs}]`)), jsonBytes: undefined };
}

/** Names of the outputs that are asked for; undefined for whatever there are. */
function wantedOutputs(infer: Asked['infer'], { tensors: { output } }: PrepareRules): string[] | undefined {
  return infer?.outputs?.map(({ name }) => name) ?? (output === undefined ? undefined : [output]);
}

function bytesOf(answer: RowAnswer): number {
  if (typeof answer === 'string') return answer.length;
  return answer instanceof Float32Array
    ? answer.byteLength
    : answer.reduce((sum, { length }) => sum + length, 0);
}

function noBuffers(): Failure {
  return {
    code: 'overloaded',
    message: 'There is no room to hold what this request needs.',
    phase: 'queued',
    retryAfterSeconds: 1,
  };
}

function oipMessage(body: Buffer): string | undefined {
  try {
    const { error } = JSON.parse(body.toString('utf8')) as { error?: unknown };
    return typeof error === 'string' ? error : undefined;
  } catch {
    return undefined; // it is told by its status
  }
}
