/**
 * What `/v1/responses` and `/v1/conversations` keep. A session is a conversation, one line of turns, or the tree of responses
 * that continue one another; it belongs to a tenant, and another tenant's is as one that never was: `undefined`.
 *
 * Every call rejects with a StoreError where the store cannot be read or written; what a call changed is on the disk when its
 * promise resolves, and readable by every worker. Bodies are JSON texts: the store does not look into them.
 */
export interface SessionsStore {
  response(args: Owned): Promise<StoredResponse | undefined>;
  /** What was asked with it. */
  inputItems(args: Owned & Page): Promise<ItemsPage | undefined>;
  removeResponse(args: Owned): Promise<boolean>;
  /** All turns up to a response, itself included. */
  chain(args: Owned & { bytesMax: number }): Promise<Chain | undefined>;
  /** Takes a conversation for one writer, and gives its turns. */
  takeLine(args: Owned & Writer & { bytesMax: number }): Promise<Line | undefined>;
  /** False: it is another's, or gone. */
  renewLine(args: { id: string } & Writer): Promise<boolean>;
  /** Gives it back; nothing happens where it is not this owner's. */
  releaseLine(args: { id: string; owner: string }): Promise<void>;
  /**
   * Keeps an answered turn, and gives its line back. `lost`: what it continues is gone, or its line was taken by another;
   * nothing is kept then.
   */
  keep(turn: Turn): Promise<'kept' | 'lost'>;

  createConversation(args: NewConversation): Promise<void>;
  conversation(args: Owned): Promise<StoredConversation | undefined>;
  setMetadata(args: Owned & { metadata: string }): Promise<StoredConversation | undefined>;
  /** With every response of it. `held`: somebody writes it now. */
  removeConversation(args: Owned & Writer): Promise<'removed' | 'held' | undefined>;
  items(args: Owned & Page): Promise<ItemsPage | undefined>;
  addItems(
    args: Owned & Writer & { items: NewItem[]; itemsMax: number },
  ): Promise<'added' | 'held' | 'full' | undefined>;
  item(args: Owned & { item: string }): Promise<string | undefined>;
  /** Of any session of the tenant, in the order asked for; those that there are. */
  itemsById(args: { tenant: string; ids: string[] }): Promise<{ id: string; body: string }[]>;
  removeItem(args: Owned & Writer & { item: string }): Promise<'removed' | 'held' | undefined>;

  /** For operators, whatever the tenant: last changed first; undefined where `after` is none of them. */
  list(args: { limit: number; after?: string; tenant?: string }): Promise<SessionSummary[] | undefined>;
  show(args: { id: string }): Promise<SessionInFull | undefined>;
  /** Id of the request that was answered with that response. */
  requestOf(args: { response: string }): Promise<string | undefined>;
  /** Gives what it removed. */
  remove(args: { id: string }): Promise<SessionSummary | undefined>;
  /** One small step of retention: removes up to `limit` sessions; whether more may be due. */
  sweep(args: {
    sinceMs: number;
    bytesMax: number;
    limit: number;
  }): Promise<{ removed: number; more: boolean }>;

  close(): Promise<void>;
}

export interface Owned {
  tenant: string;
  id: string;
}

/** One request that writes a line: by whom it is held, for how long, and until when others believe it. */
export interface Writer {
  /** `BOOT/REQUEST` */
  owner: string;
  /** The process; a line whose owner's process is gone is free. */
  pid: number;
  nowMs: number;
  untilMs: number;
}

export interface Page {
  order: 'asc' | 'desc';
  /** The id of an item. */
  after?: string;
  limit: number;
}

/** `after-unknown`: no such item was found to go on from. */
export interface ItemsPage {
  bodies: string[];
  more: boolean;
  afterUnknown?: true;
}

export interface StoredResponse {
  /** Without its output. */
  body: string;
  output: string[];
}

export interface Chain {
  /** `broken`: an earlier response is gone; `failed`: it never became a turn; `too-long`: more than the bytes that are allowed. */
  trouble?: 'broken' | 'failed' | 'too-long';
  /** The session that a response continuing it belongs to; undefined for a new one. */
  session: string | undefined;
  bodies: string[];
  /** Of the last turn. */
  last: Answerer | undefined;
}

export interface Line {
  trouble?: 'held' | 'too-long';
  bodies: string[];
  last: Answerer | undefined;
}

/** What answered a turn. */
export interface Answerer {
  backend: string;
  model: string;
}

export interface NewItem {
  id: string;
  body: string;
}

export interface Turn {
  tenant: string;
  id: string;
  session: string;
  conversation: boolean;
  parent: string | undefined;
  /** Of a conversation: who holds it. */
  owner: string | undefined;
  atMs: number;
  nowMs: number;
  /** A `failed` one is kept to be read, and is no turn of anything. */
  status: 'completed' | 'incomplete' | 'failed';
  answerer: Answerer;
  /** Id of the request. */
  request: string;
  body: string;
  input: NewItem[];
  output: NewItem[];
}

export interface NewConversation {
  tenant: string;
  id: string;
  nowMs: number;
  metadata: string;
  items: NewItem[];
}

export interface StoredConversation {
  id: string;
  createdMs: number;
  metadata: string;
}

export interface SessionSummary {
  id: string;
  tenant: string;
  conversation: boolean;
  turns: number;
  createdMs: number;
  updatedMs: number;
}

export interface SessionInFull extends SessionSummary {
  metadata: string;
  responses: {
    id: string;
    parent: string | null;
    atMs: number;
    status: string;
    backend: string;
    model: string;
    request: string;
    body: string;
  }[];
  items: { id: string; response: string | null; output: boolean; listed: boolean; body: string }[];
}
