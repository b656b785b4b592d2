const ALL = 2 ** 32;

export interface SampleState {
  below: number;
  /** Base 64 of 32 bits for each session, little end first, and of 16 bits for what is known of it. */
  sessions: string;
  bits: string;
}

/**
 * What is known of sessions, of a bounded number of them: those whose hash is below a threshold, which is halved when there
 * are too many. Hashes have nothing to do with arms or with what befalls a session, so that what is true of the sample is
 * true of all.
 */
export class SessionSample {
  readonly #max: number;
  readonly #known: Map<number, number>;
  #below: number;

  constructor(max: number, state?: SampleState) {
    this.#max = max;
    this.#below = state?.below ?? ALL;
    this.#known = new Map();
    if (!state) return;
    const sessions = Buffer.from(state.sessions, 'base64');
    const bits = Buffer.from(state.bits, 'base64');
    for (let i = 0; 4 * i < sessions.length; i++) {
      this.#known.set(sessions.readUInt32LE(4 * i), bits.readUInt16LE(2 * i));
    }
  }

  /** How many sessions each of the sample stands for. */
  get stands(): number {
    return ALL / this.#below;
  }

  /** Those of `bits` (16 at most) that were not known of the session so far; 0 for one that is not of the sample. */
  take(session: number, bits: number): number {
    if (session >= this.#below) return 0;
    const known = this.#known.get(session);
    if (known !== undefined) {
      const fresh = bits & ~known;
      if (fresh !== 0) this.#known.set(session, known | bits);
      return fresh;
    }
    this.#known.set(session, bits);
    if (this.#known.size > this.#max) this.#halve();
    return bits;
  }

  #halve(): void {
    while (this.#known.size > this.#max) {
      this.#below /= 2;
      for (const session of this.#known.keys()) {
        if (session >= this.#below) this.#known.delete(session);
      }
    }
  }

  toJSON(): SampleState {
    const sessions = Buffer.alloc(4 * this.#known.size);
    const bits = Buffer.alloc(2 * this.#known.size);
    let i = 0;
    for (const [session, known] of this.#known) {
      sessions.writeUInt32LE(session, 4 * i);
      bits.writeUInt16LE(known, 2 * i++);
    }
    return { below: this.#below, sessions: sessions.toString('base64'), bits: bits.toString('base64') };
  }
}
