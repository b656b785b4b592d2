import type { Exchange, Path } from '../../gateway/contracts.ts';
import type { Json } from '../../protocols/json-object.ts';
import type { StoredConversation } from '../../store/sessions.ts';
import { answerJson, listObject, noSuch, nothingAt, seconds, unstorable, wrongMethod } from '../answers.ts';
import { readObject } from '../body.ts';
import type { SessionsDeps } from '../contracts.ts';
import { isId, newId } from '../ids.ts';
import { type Item, readItems, toKeep } from '../items.ts';
import { writerOf } from '../line.ts';
import { answerItems, readPage } from '../pages.ts';
import { given, metadataOf, Refused } from '../refused.ts';
import { heldElsewhere } from '../responses/index.ts';
import { waitForStore } from '../waiting.ts';

/** Items that one request may add. */
const ADDED_MAX = 20;
/** Items of a conversation that its tenant adds. */
const ITEMS_MAX = 10_000;

/** `/v1/conversations`: lines of turns, to which responses are added one after the other. */
export class Conversations {
  readonly #deps: SessionsDeps;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  take(path: Path, x: Exchange): void {
    const [id, part, item, ...more] = x.stateful!.path.slice('/v1/conversations'.length).split('/').slice(1);
    const method = x.caller.method === 'HEAD' ? 'GET' : x.caller.method;
    if (more.length > 0 || (part !== undefined && part !== 'items')) {
      path.refuse(x, nothingAt(x));
      return;
    }
    const calls: Record<string, () => Promise<void>> =
      id === undefined
        ? { POST: () => this.#create(path, x) }
        : part === undefined
          ? {
              GET: () => this.#get(path, x, id),
              POST: () => this.#update(path, x, id),
              DELETE: () => this.#remove(path, x, id),
            }
          : item === undefined
            ? { GET: () => this.#items(path, x, id), POST: () => this.#add(path, x, id) }
            : { GET: () => this.#item(path, x, id, item), DELETE: () => this.#removeItem(path, x, id, item) };
    const call = calls[method];
    if (!call) path.refuse(x, wrongMethod(x, Object.keys(calls).join(', ')));
    else if (id !== undefined && !isId(id)) path.refuse(x, noSuch('conversation', id));
    else {
      waitForStore(path, x);
      call().catch((error: unknown) => {
        path.refuse(x, error instanceof Refused ? error.failure : unstorable(error));
      });
    }
  }

  async #create(path: Path, x: Exchange): Promise<void> {
    const { store, clock } = this.#deps;
    const body: Json = x.caller.body.length === 0 ? {} : readObject(x.caller.body);
    const metadata = metadataOf(body) ?? {};
    const items = given(body, 'items') === undefined ? [] : readAdded(body);
    const id = newId('conv');
    const nowMs = clock.wall();
    await store.createConversation({
      tenant: x.tenant,
      id,
      nowMs,
      metadata: JSON.stringify(metadata),
      items: items.map((item) => toKeep(item)),
    });
    answerJson(path, x, conversationObject({ id, createdMs: nowMs, metadata: JSON.stringify(metadata) }));
  }

  async #get(path: Path, x: Exchange, id: string): Promise<void> {
    this.#show(path, x, id, await this.#deps.store.conversation({ tenant: x.tenant, id }));
  }

  async #update(path: Path, x: Exchange, id: string): Promise<void> {
    const metadata = metadataOf(readObject(x.caller.body));
    if (metadata === undefined) throw new Refused("'metadata' is missing.", 'metadata');
    const updated = await this.#deps.store.setMetadata({
      tenant: x.tenant,
      id,
      metadata: JSON.stringify(metadata),
    });
    this.#show(path, x, id, updated);
  }

  #show(path: Path, x: Exchange, id: string, found: StoredConversation | undefined): void {
    if (found) answerJson(path, x, conversationObject(found));
    else path.refuse(x, noSuch('conversation', id));
  }

  async #remove(path: Path, x: Exchange, id: string): Promise<void> {
    const removed = await this.#deps.store.removeConversation({ tenant: x.tenant, id, ...this.#writer(x) });
    if (removed === 'removed') answerJson(path, x, { id, object: 'conversation.deleted', deleted: true });
    else path.refuse(x, removed === 'held' ? heldElsewhere() : noSuch('conversation', id));
  }

  async #items(path: Path, x: Exchange, id: string): Promise<void> {
    const page = readPage(x.caller.target);
    if ('code' in page) {
      path.refuse(x, page);
      return;
    }
    const found = await this.#deps.store.items({ tenant: x.tenant, id, ...page });
    if (found) answerItems(path, x, found, page);
    else path.refuse(x, noSuch('conversation', id));
  }

  async #add(path: Path, x: Exchange, id: string): Promise<void> {
    const items = readAdded(readObject(x.caller.body)).map((item) => toKeep(item));
    const owned = { tenant: x.tenant, id, ...this.#writer(x) };
    const added = await this.#deps.store.addItems({ ...owned, items, itemsMax: ITEMS_MAX });
    if (added === 'added')
      answerJson(
        path,
        x,
        listObject(
          items.map(({ body }) => JSON.parse(body)),
          false,
        ),
      );
    else if (added === 'full')
      throw new Refused(`A conversation may have ${ITEMS_MAX} items at most.`, 'items');
    else path.refuse(x, added === 'held' ? heldElsewhere() : noSuch('conversation', id));
  }

  async #item(path: Path, x: Exchange, id: string, item: string): Promise<void> {
    const body = await this.#deps.store.item({ tenant: x.tenant, id, item });
    if (body === undefined) path.refuse(x, noSuch('item', item));
    else answerJson(path, x, JSON.parse(body));
  }

  async #removeItem(path: Path, x: Exchange, id: string, item: string): Promise<void> {
    const owned = { tenant: x.tenant, id };
    const removed = await this.#deps.store.removeItem({ ...owned, item, ...this.#writer(x) });
    if (removed === 'removed') await this.#get(path, x, id);
    else path.refuse(x, removed === 'held' ? heldElsewhere() : noSuch('item', item));
  }

  #writer(x: Exchange) {
    const { boot, clock } = this.#deps;
    return writerOf(boot, x.id, clock.wall());
  }
}

function readAdded(body: Json): Item[] {
  const items = readItems(given(body, 'items'), 'items');
  if (items.length > ADDED_MAX) throw new Refused(`'items' may have ${ADDED_MAX} items at most.`, 'items');
  return items.map((item, index) => {
    if (item.type === 'item_reference')
      throw new Refused('An item of a conversation is itself, and no reference.', `items[${index}].type`);
    return item;
  });
}

function conversationObject({ id, createdMs, metadata }: StoredConversation): Json {
  return { id, object: 'conversation', created_at: seconds(createdMs), metadata: JSON.parse(metadata) };
}
