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

/** A run that a process of its own makes: one line of JSON on its input, and one on its output. */
export interface LoadTask {
  /** Equal servers; requests go to the one with the least on its way. `base`: the path before the API's own, such as `/v1`. */
  endpoints: { origin: string; base: string }[];
  /** Of every request. */
  headers: Record<string, string>;
  tls?: { ca?: string; cert?: string; key?: string; serverName?: string };
  model: string;
  kind: 'chat' | 'embeddings' | 'tensors';
  /** What the engine knows the longest answer of a chat by. */
  cap: 'max_tokens' | 'max_completion_tokens';
  /** Requests a second, at times of a Poisson process; absent: a closed loop of `inflightMax`. */
  perSecond?: number;
  /** Requests on their way at one endpoint at most. What an open loop would send beyond that is dropped, and counted. */
  inflightMax: number;
  tokensIn: number;
  tokensOut: number;
  warmupMs: number;
  durationMs: number;
  timeoutMs: number;
  seed: number;
}

/** What came of it: milliseconds and counts; why there was no run at all, in words. */
export type LoadTaskResult =
  | { unable: string }
  | {
      intended: number;
      ok: number;
      failed: number;
      dropped: number;
      unfinished: number;
      failures: Record<string, number>;
      /** To the first token of streams, to the end of other answers, from the intended time; absent where none came. */
      times?: { p50: number; p95: number; p99: number; max: number };
      tokensOut: number;
      measuredMs: number;
      /** Most requests on their way at one endpoint. */
      inflightMost: number;
    };
