import type { EventDraft } from '../../events/event-maker.ts';
import type { Exchange, Path } from '../../gateway/contracts.ts';
import type { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../protocols/json-object.ts';
import type { SessionsStore } from '../../store/sessions.ts';
import { unstorable } from '../answers.ts';
import { type Item, toKeep } from '../items.ts';
import type { HeldLine } from '../line.ts';
import { moveOf } from './moves.ts';
import { type ResponseEnd, type ResponseHead, responseObject } from './object.ts';

export interface TurnOptions {
  path: Path;
  x: Exchange;
  store: SessionsStore;
  head: ResponseHead;
  /** The session that it belongs to: a conversation, or the first response of a tree. */
  session: string;
  /** What was asked, without what came before. */
  input: readonly Item[];
  /** Its conversation; undefined where it has none. */
  line: HeldLine | undefined;
  tell: (draft: EventDraft) => void;
}

/** One turn, from its request until it is kept. */
export class Turn {
  readonly head: ResponseHead;
  readonly #options: TurnOptions;

  constructor(options: TurnOptions) {
    this.#options = options;
    this.head = options.head;
  }

  /** What keeps its requests together; undefined for one that nothing will follow. */
  get sessionKey(): string | undefined {
    const { session, head } = this.#options;
    return head.request.store || session !== head.id ? session : undefined;
  }

  /**
   * Keeps the turn, then gives its object, or why it could not be kept. Its conversation is free by then. To be called before
   * the request is over.
   */
  keep(end: ResponseEnd, done: (object: Json, failure: Failure | undefined) => void): void {
    const { path, store, head, line } = this.#options;
    const nowMs = path.deps.clock.wall();
    const completedAt = end.status === 'failed' ? undefined : Math.floor(nowMs / 1000);
    const object = responseObject(head, { completedAt, ...end });
    if (!head.request.store) {
      line?.giveBack();
      this.#told(end);
      done(object, undefined);
      return;
    }
    line?.storing();
    store.keep(this.#stored(object, end, nowMs)).then(
      (kept) => {
        if (kept === 'kept') {
          line?.kept();
          this.#told(end);
        } else line?.giveBack();
        done(object, kept === 'kept' ? undefined : lost(head.request.conversation !== undefined));
      },
      (error: unknown) => {
        line?.giveBack();
        this.#tellUnkept(error as Error);
        done(object, unstorable(error));
      },
    );
  }

  #stored({ output, ...body }: Json, { status }: ResponseEnd, nowMs: number) {
    const { x, head, session, input, line } = this.#options;
    return {
      tenant: x.tenant,
      id: head.id,
      session,
      conversation: line !== undefined,
      parent: head.request.previous,
      owner: line?.owner,
      atMs: x.wallMs,
      nowMs,
      status: status as 'completed' | 'incomplete' | 'failed',
      answerer: { backend: x.backend?.name ?? '', model: x.backend?.model ?? '' },
      request: x.id,
      body: JSON.stringify(body),
      input: input.map((item) => toKeep(item)),
      output: (output as (Item & { id: string })[]).map(({ id, ...item }) => toKeep(item as Item, id)),
    };
  }

  #told({ status }: ResponseEnd): void {
    const { path, x, session, tell } = this.#options;
    const move = status === 'failed' ? undefined : moveOf(path, x, session);
    if (move) tell(move);
  }

  #tellUnkept(error: Error): void {
    const { x, head, tell } = this.#options;
    tell({
      type: 'response-not-kept',
      subject: `response:${head.id}`,
      causes: [x.id],
      data: { tenant: x.tenant, why: error.message },
    });
  }
}

/** While it was answered, what it continues was removed, or its conversation was taken by another. */
function lost(conversation: boolean): Failure {
  return {
    code: 'conflict',
    message: conversation
      ? 'The conversation was removed, or written by somebody else, while this was answered.'
      : 'The response that this one continues was removed while this was answered.',
    phase: 'committed',
    param: conversation ? 'conversation' : 'previous_response_id',
    shouldRetry: false,
  };
}
