/** Requests waiting and running inside the engine; the share of its cache in use, 0 to 1. */
export interface GaugeNames {
  waiting: readonly string[];
  running: readonly string[];
  cache: readonly string[];
}

/** What differs between engines that speak one protocol, as data. */
export interface Dialect {
  /** The engine as it is written in the configuration. */
  engine: string;
  protocol: 'openai' | 'oip';
  /**
   * Asked by GET; a status below 400 means well; never an inference. Resolved against the endpoint's address plus a
   * slash: `/health` lies at its origin, `models` under it.
   */
  healthPath: string;
  /** The engine's own metrics, resolved in the same way; undefined where it has none, or not on the port of its API. */
  gaugesPath?: string;
  /**
   * Names of its load gauges, the current one first, older ones after it; `NAME{LABEL=VALUE}` is one series of several. A
   * missing gauge is not zero.
   */
  gauges: GaugeNames;
  /** Takes `stream_options.include_usage`, so that a stream's tokens can be counted exactly. */
  streamUsage: boolean;
  /** How it is told the longest answer of a chat, where the caller did not; `max_tokens` by default, as of completions. */
  chatCap?: 'max_completion_tokens';
  /** Statuses that this engine sends for bad input although they say otherwise; they count against nobody. */
  badInputStatuses?: readonly number[];
  /** What this engine says, with a status of 500 or more, of input that it cannot read: the caller's mistake as well. */
  badInputMessage?: RegExp;
  /** How it tells the tokens of a chat's prompt; undefined where it does not. */
  tokenizes?: 'vllm' | 'llama.cpp';
  /** OIP: takes the binary tensor extension. */
  binaryTensors?: boolean;
}
