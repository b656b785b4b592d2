/** One request of a run, ready to be sent. */
export interface LoadRequest {
  path: string;
  /** JSON. */
  body: string;
  /** The answer is to come as server-sent events. */
  streams: boolean;
}

/** How a request ended. */
export interface Outcome {
  /** 0 when no answer came. */
  status: number;
  /** Why it counts as failed: `http-503`, `refused`, `reset`, `timeout`, `cut`, `error-event`, `broken`; undefined when it did not. */
  failure: string | undefined;
  /** The rung that answered, where `x-armature-degraded` says so. */
  degraded: string | undefined;
  /** Tokens of the answer: as its usage says, else pieces with content. */
  outputTokens: number;
  /** Tokens of the prompt that the engine read, where the answer's usage says it: those left out that it knew from before. */
  readTokens?: number | undefined;
}

/** Hears of a request as it goes; at most one `onEnd`, which is the last call. */
export interface Watch {
  /** Its bytes are being written to a connection. */
  onSent(): void;
  /** A piece of a stream with content came; the first one included. */
  onToken(): void;
  onEnd(outcome: Outcome): void;
}

/** Sends requests to one address. */
export interface Sender {
  /** Returns what breaks the request off; nothing is heard of it after that. */
  send(request: LoadRequest, watch: Watch): () => void;
  close(): Promise<void>;
}
