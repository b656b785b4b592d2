import type { EventDraft } from '../../events/event-maker.ts';
import { type Exchange, isCompressed, isGet, type OpenaiCall, type Path } from '../../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../../kernel/errors.ts';
import { readOpenaiRequest } from '../../protocols/openai/request.ts';
import type { Answerer, SessionsStore } from '../../store/sessions.ts';
import { answerJson, noSuch, nothingAt, unstorable, wrongMethod } from '../answers.ts';
import type { SessionsDeps } from '../contracts.ts';
import { isId, newId } from '../ids.ts';
import { type Item, type Reference, readKept } from '../items.ts';
import { HeldLine, writerOf } from '../line.ts';
import { answerItems, readPage } from '../pages.ts';
import { Refused } from '../refused.ts';
import { waitForStore } from '../waiting.ts';
import { ResponseCaller } from './caller.ts';
import { chatBody } from './chat-body.ts';
import { type ResponseRequest, readResponseRequest } from './request.ts';
import { Turn } from './turn.ts';

/** The longest history that is read for one turn, characters. */
const HISTORY_MAX = 16 * 1024 * 1024;

/** What comes before a turn, and the items that it names. */
interface Before {
  items: Item[];
  session: string | undefined;
  last: Answerer | undefined;
  line: HeldLine | undefined;
  named: ReadonlyMap<string, Item>;
}

const NOTHING_BEFORE: Before = {
  items: [],
  session: undefined,
  last: undefined,
  line: undefined,
  named: new Map(),
};

/** `/v1/responses`: a turn is asked of its route as a chat, and kept. */
export class Responses {
  readonly #deps: SessionsDeps;
  readonly #store: SessionsStore;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    this.#store = deps.store;
  }

  take(path: Path, x: Exchange): void {
    const [id, part, ...more] = x.stateful!.path.slice('/v1/responses'.length).split('/').slice(1);
    const { method } = x.caller;
    const isRead = isGet(x.caller);
    if (id === undefined) {
      if (method === 'POST') this.#create(path, x);
      else path.refuse(x, wrongMethod(x, 'POST'));
    } else if (more.length > 0) path.refuse(x, nothingAt(x));
    else if (part === undefined) {
      if (isRead) this.#get(path, x, id);
      else if (method === 'DELETE') this.#remove(path, x, id);
      else path.refuse(x, wrongMethod(x, 'GET, HEAD, DELETE'));
    } else if (part === 'input_items') {
      if (isRead) this.#inputItems(path, x, id);
      else path.refuse(x, wrongMethod(x, 'GET, HEAD'));
    } else if (part === 'cancel' && method === 'POST') this.#cancel(path, x, id);
    else path.refuse(x, nothingAt(x));
  }

  #get(path: Path, x: Exchange, id: string): void {
    if (new URLSearchParams(x.caller.target.split('?')[1]).get('stream') === 'true') {
      path.refuse(
        x,
        invalidRequest(
          'Only responses made in the background can be streamed later, and none are here.',
          'stream',
        ),
      );
      return;
    }
    this.#ask(
      path,
      x,
      id,
      (owned) => this.#store.response(owned),
      (found) => {
        const output = found.output.map((body) => JSON.parse(body) as unknown);
        answerJson(path, x, { ...(JSON.parse(found.body) as object), output });
      },
    );
  }

  #inputItems(path: Path, x: Exchange, id: string): void {
    const page = readPage(x.caller.target);
    if ('code' in page) path.refuse(x, page);
    else
      this.#ask(
        path,
        x,
        id,
        (owned) => this.#store.inputItems({ ...owned, ...page }),
        (found) => answerItems(path, x, found, page),
      );
  }

  #remove(path: Path, x: Exchange, id: string): void {
    this.#ask(
      path,
      x,
      id,
      async (owned) => (await this.#store.removeResponse(owned)) || undefined,
      () => answerJson(path, x, { id, object: 'response', deleted: true }),
    );
  }

  #cancel(path: Path, x: Exchange, id: string): void {
    this.#ask(
      path,
      x,
      id,
      (owned) => this.#store.response(owned),
      () =>
        path.refuse(
          x,
          invalidRequest('Only responses made in the background can be cancelled, and none are here.'),
        ),
    );
  }

  /** Asks the store for what is kept under an id, and tells that there is none where there is none for this tenant. */
  #ask<Found>(
    path: Path,
    x: Exchange,
    id: string,
    find: (owned: { tenant: string; id: string }) => Promise<Found | undefined>,
    found: (value: Found) => void,
  ): void {
    if (!isId(id)) {
      path.refuse(x, noSuch('response', id));
      return;
    }
    const stop = waitForStore(path, x);
    find({ tenant: x.tenant, id }).then(
      (value) => {
        stop();
        if (value === undefined) path.refuse(x, noSuch('response', id));
        else if (!x.over) found(value);
      },
      (error: unknown) => {
        stop();
        path.refuse(x, unstorable(error));
      },
    );
  }

  #create(path: Path, x: Exchange): void {
    let request: ResponseRequest;
    try {
      request = readResponseRequest(bodyOf(x));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      path.refuse(x, error.failure);
      return;
    }
    const { routes, pipelines } = path.deps.world;
    const route = routes.get(request.model) ?? pipelines.get(request.model);
    const references = request.input.filter((item): item is Reference => item.type === 'item_reference');
    const isAlone =
      request.previous === undefined && request.conversation === undefined && references.length === 0;
    // A route that is not there is told as the path tells it, and nothing is read for it.
    if (isAlone || !route) {
      this.#go(path, x, request, NOTHING_BEFORE);
      return;
    }
    const stop = waitForStore(path, x, route.settings.deadline);
    this.#before(x, request, references).then(
      (before) => {
        stop();
        if (!('code' in before)) {
          if (before.line) x.scope.add(() => before.line!.leave());
          if (!x.over) this.#go(path, x, request, before);
        } else path.refuse(x, before);
      },
      (error: unknown) => {
        stop();
        path.refuse(x, unstorable(error));
      },
    );
  }

  /** Reads what comes before; takes the conversation, where there is one. */
  async #before(
    x: Exchange,
    request: ResponseRequest,
    references: readonly Reference[],
  ): Promise<Before | Failure> {
    const { tenant } = x;
    const named = await this.#named(tenant, references);
    const missing = references.find(({ id }) => !named.has(id));
    if (missing) return noSuch('item', missing.id, 'input');
    const { previous, conversation } = request;
    if (previous !== undefined) {
      const chain = isId(previous)
        ? await this.#store.chain({ tenant, id: previous, bytesMax: HISTORY_MAX })
        : undefined;
      const param = 'previous_response_id';
      if (!chain || chain.trouble === 'broken') return noSuch('response', previous, param);
      if (chain.trouble === 'failed')
        return invalidRequest(`The response ${previous} failed: it cannot be continued.`, param);
      if (chain.trouble === 'too-long') return tooLong(param);
      const { session, last } = chain;
      return { items: chain.bodies.map(readKept), session, last, line: undefined, named };
    }
    if (conversation === undefined) return { ...NOTHING_BEFORE, named };
    const { clock, timers, boot } = this.#deps;
    const writer = () => writerOf(boot, x.id, clock.wall());
    const line = isId(conversation)
      ? await this.#store.takeLine({ tenant, id: conversation, bytesMax: HISTORY_MAX, ...writer() })
      : undefined;
    if (!line) return noSuch('conversation', conversation, 'conversation');
    if (line.trouble === 'held') return heldElsewhere();
    if (line.trouble === 'too-long') return tooLong('conversation');
    return {
      items: line.bodies.map(readKept),
      session: conversation,
      last: line.last,
      line: new HeldLine(this.#store, timers, conversation, writer),
      named,
    };
  }

  /** The items that are named by their ids, those that there are. */
  async #named(tenant: string, references: readonly Reference[]): Promise<Before['named']> {
    // Hardly a turn names one: those that do not are spared the way to the store and back.
    if (references.length === 0) return NOTHING_BEFORE.named;
    const found = await this.#store.itemsById({ tenant, ids: references.map(({ id }) => id) });
    return new Map(found.map(({ id, body }) => [id, readKept(body)]));
  }

  /** Asks its route, as for a chat. */
  #go(path: Path, x: Exchange, request: ResponseRequest, before: Before): void {
    const id = newId('resp');
    const { buffers, world } = path.deps;
    let body: Buffer;
    const input = request.input.flatMap((item) =>
      item.type === 'item_reference' ? (before.named.get(item.id) ?? []) : item,
    );
    try {
      body = chatBody(request, [...before.items, ...input], world.routes.get(request.model));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      path.refuse(x, error.failure);
      return;
    }
    const read = readOpenaiRequest(body);
    if ('message' in read) {
      path.refuse(x, invalidRequest(read.message, read.param));
      return;
    }
    const { caller } = x;
    if (!buffers.take(body.length)) {
      path.refuse(x, noRoom());
      return;
    }
    caller.whenClosed(() => buffers.give(body.length));
    const turn = new Turn({
      path,
      x,
      store: this.#store,
      head: { id, createdAt: Math.floor(x.wallMs / 1000), request },
      session: before.session ?? id,
      input,
      line: before.line,
      tell: (draft) => this.#tell(path, draft),
    });
    if (before.last && before.last.backend !== '') x.last = before.last;
    const responding = new ResponseCaller(x, turn, body);
    x.caller = responding;
    // Who asks from within is told that it is over when the answer has been given, as ever.
    const { terms } = x;
    if (terms?.onOver) {
      const { onOver } = terms;
      x.terms = { ...terms, onOver: () => responding.whenAnswered(() => onOver(x)) };
    }
    x.fits = request.truncation === 'disabled' ? 'whole' : true;
    const call: OpenaiCall = {
      protocol: 'openai',
      kind: 'chat',
      path: '/chat/completions',
      route: request.model,
      stream: read.stream,
      request: read,
    };
    path.route(x, call);
  }

  #tell(path: Path, draft: EventDraft): void {
    path.deps.facts.push({ kind: 'event', event: this.#deps.makeEvent(draft) });
  }
}

function bodyOf(x: Exchange): Buffer {
  if (isCompressed(x.caller)) throw new Refused('Compressed request bodies are not read.');
  return x.caller.body;
}

export function heldElsewhere(): Failure {
  return {
    code: 'conflict',
    message: 'Another request is writing this conversation now. Send this one when that has been answered.',
    phase: 'before-queue',
    param: 'conversation',
  };
}

function tooLong(param: string): Failure {
  return invalidRequest('What was said before is longer than can be read for one turn.', param);
}

function noRoom(): Failure {
  return {
    code: 'overloaded',
    message: 'There is no room for what was said before now.',
    phase: 'before-queue',
    retryAfterSeconds: 1,
  };
}
