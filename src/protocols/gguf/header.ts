/**
 * The header of a GGUF file, without what a model is made of. Format: ggml/docs/gguf.md of llama.cpp, versions 2 and 3.
 */

/** Gives `count` bytes from `at` on; fewer where the file ends. */
export type ReadAt = (at: number, count: number) => Buffer;

export interface GgufTensor {
  name: string;
  elements: number;
  /** Of ggml's types. */
  type: number;
  /** From the beginning of the data, in bytes. */
  offset: number;
}

const MAGIC = 'GGUF';
/** The header of the largest vocabularies has some 20 MB. */
const HEADER_BYTES_MAX = 256 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
/** Values of all lists of a header: the largest vocabularies have some 300,000 tokens, in three lists. */
const LISTED_MAX = 8_000_000;
/** Lists in lists, which the format allows and nobody writes. */
const DEPTH_MAX = 4;

const STRING = 8;
const ARRAY = 9;
/** Values of each other type: how many bytes they have, and how they are read. */
const SCALARS: Record<number, { size: number; read: (bytes: Buffer) => number | boolean }> = {
  0: { size: 1, read: (bytes) => bytes.readUInt8() },
  1: { size: 1, read: (bytes) => bytes.readInt8() },
  2: { size: 2, read: (bytes) => bytes.readUInt16LE() },
  3: { size: 2, read: (bytes) => bytes.readInt16LE() },
  4: { size: 4, read: (bytes) => bytes.readUInt32LE() },
  5: { size: 4, read: (bytes) => bytes.readInt32LE() },
  6: { size: 4, read: (bytes) => bytes.readFloatLE() },
  7: { size: 1, read: (bytes) => bytes.readUInt8() !== 0 },
  10: { size: 8, read: (bytes) => Number(bytes.readBigUInt64LE()) },
  11: { size: 8, read: (bytes) => Number(bytes.readBigInt64LE()) },
  12: { size: 8, read: (bytes) => bytes.readDoubleLE() },
};

export function isGgufHead(head: Buffer): boolean {
  return head.subarray(0, 4).toString('latin1') === MAGIC;
}

/** Its values alone. Throws, in words, where the file is none. */
export function ggufValues(readAt: ReadAt): Map<string, unknown> {
  return begin(new Reader(readAt)).values;
}

/** Its values, and where each tensor lies. Throws, in words, where the file is none. */
export function ggufHeader(readAt: ReadAt): {
  values: Map<string, unknown>;
  tensors: GgufTensor[];
  /** Where the data begins. */
  dataAt: number;
} {
  const reader = new Reader(readAt);
  const { values, tensorCount } = begin(reader);
  const tensors: GgufTensor[] = [];
  for (let left = tensorCount; left > 0; left--) {
    const name = reader.string();
    let elements = 1;
    for (let dimensions = reader.u32(); dimensions > 0; dimensions--) elements *= reader.u64();
    tensors.push({ name, elements, type: reader.u32(), offset: reader.u64() });
  }
  const alignment = Number(values.get('general.alignment') ?? 32);
  return { values, tensors, dataAt: Math.ceil(reader.position / alignment) * alignment };
}

function begin(reader: Reader): { values: Map<string, unknown>; tensorCount: number } {
  if (reader.bytes(4).toString('latin1') !== MAGIC) throw new Error('it is no GGUF file');
  const version = reader.u32();
  if (version !== 2 && version !== 3) throw new Error(`GGUF of version ${version} is not known`);
  const tensorCount = reader.length();
  const values = new Map<string, unknown>();
  for (let left = reader.length(); left > 0; left--) {
    const key = reader.string();
    values.set(key, reader.value(reader.u32()));
  }
  return { values, tensorCount };
}

/** Reads a header piece by piece, as far as it goes. Numbers are little-endian. */
class Reader {
  readonly #readAt: ReadAt;
  #buffer = Buffer.alloc(0);
  #at = 0;
  #read = 0;
  #listed = 0;

  constructor(readAt: ReadAt) {
    this.#readAt = readAt;
  }

  /** Where the next byte stands in the file. */
  get position(): number {
    return this.#read - this.#buffer.length + this.#at;
  }

  bytes(count: number): Buffer {
    if (this.#at + count > this.#buffer.length) this.#fill(count);
    const bytes = this.#buffer.subarray(this.#at, this.#at + count);
    this.#at += count;
    return bytes;
  }

  u32(): number {
    return this.bytes(4).readUInt32LE();
  }

  u64(): number {
    return Number(this.bytes(8).readBigUInt64LE());
  }

  length(): number {
    const length = this.u64();
    if (length > HEADER_BYTES_MAX) throw new Error('its header is broken');
    return length;
  }

  string(): string {
    return this.bytes(this.length()).toString('utf8');
  }

  value(type: number, depth = 0): unknown {
    if (type === STRING) return this.string();
    if (type === ARRAY) return this.#list(depth + 1);
    const scalar = SCALARS[type];
    if (!scalar) throw new Error(`its header has a value of type ${type}, which is not known`);
    return scalar.read(this.bytes(scalar.size));
  }

  #list(depth: number): unknown[] {
    if (depth > DEPTH_MAX) throw new Error(`its header has lists in lists, deeper than ${DEPTH_MAX}`);
    const type = this.u32();
    const values: unknown[] = [];
    const count = this.length();
    this.#listed += count;
    if (this.#listed > LISTED_MAX) throw new Error(`its header lists more than ${LISTED_MAX} values`);
    for (let left = count; left > 0; left--) values.push(this.value(type, depth));
    return values;
  }

  #fill(count: number): void {
    const rest = this.#buffer.subarray(this.#at);
    const wanted = Math.max(CHUNK_BYTES, count - rest.length);
    if (this.#read + wanted > HEADER_BYTES_MAX) throw new Error('its header is too long');
    const more = this.#readAt(this.#read, wanted);
    this.#read += more.length;
    this.#buffer = Buffer.concat([rest, more]);
    this.#at = 0;
    if (this.#buffer.length < count) throw new Error('its header ends too early');
  }
}
