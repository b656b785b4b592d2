/** The last values of a stream, in single precision. */
export class LastValues {
  readonly #ring: Float32Array;
  #seen = 0;

  constructor(size: number) {
    this.#ring = new Float32Array(size);
  }

  push(value: number): void {
    this.#ring[this.#seen++ % this.#ring.length] = value;
  }

  /** Up to so many, the newest included; in no order. */
  last(rows: number): Float32Array {
    const count = Math.min(rows, this.#seen, this.#ring.length);
    return Float32Array.from(
      { length: count },
      (_, i) => this.#ring[(this.#seen - 1 - i) % this.#ring.length]!,
    );
  }

  toJSON(): string {
    return packed(this.last(this.#ring.length).reverse());
  }

  restore(state: string): void {
    for (const value of unpacked(state)) this.push(value);
  }
}

/** Four bytes a value, base 64. */
export function packed(values: Float32Array): string {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64');
}

export function unpacked(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}
