/** What one caller brings to a joined request: rows of input that can go upstream with those of others. */
export interface Part {
  /** Parts of one key agree in everything but their rows. */
  readonly key: string;
  /** Rows. */
  readonly count: number;
  readonly joiner: Joiner;
}

/** A body whose JSON part ends at `jsonBytes` where raw tensors follow it; undefined where none do. */
export interface Framed {
  body: Buffer;
  jsonBytes: number | undefined;
}

/** What one caller gets of the answer to a joined request. */
export interface Share extends Framed {
  /** Its part of the tokens, where the engine counted them. */
  tokensIn: number | undefined;
}

/** Puts parts of one key together, and takes their answer apart again. */
export interface Joiner {
  join(parts: readonly Part[]): Framed;
  /** The share of each part, in order; undefined where the answer cannot be told apart. `ids`: Armature's own, of each. */
  split(answer: Framed, parts: readonly Part[], ids: readonly string[]): Share[] | undefined;
}
