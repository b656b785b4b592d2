import type { UpstreamHeaders } from '../../contracts.ts';

/** Bounds of what an engine may send before its body, around its chunks and behind them. */
const HEAD_BYTES_MAX = 64 * 1024;
const CHUNK_LINE_BYTES_MAX = 1024;
const INTERIM_ANSWERS_MAX = 16;

const CR = 0x0d;
const LF = 0x0a;
const HEAD_END = Buffer.from('\r\n\r\n');
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/;
const CHUNK_LINE = /^([0-9a-fA-F]{1,13})[ \t]*(?:;.*)?$/;

export interface AnswerSink {
  onHead(status: number, headers: UpstreamHeaders): void;
  /** A piece of the body, taken out of its framing; valid only during the call. */
  onBody(piece: Buffer): void;
  /** The answer is whole. `reusable`: another request may follow on its connection. */
  onWhole(reusable: boolean): void;
}

type State =
  | 'head'
  | 'length'
  | 'chunk-line'
  | 'chunk'
  | 'chunk-end'
  | 'trailers'
  | 'until-close'
  | 'whole'
  | 'broken';

/**
 * Reads HTTP/1.1 answers (RFC 9112) from pieces of any size. It is strict: what two readers could take for different
 * things is refused, above all two framings at once, repeated lengths, folded lines and anything but CRLF.
 * `push` and `end` give what is wrong in words, or undefined.
 */
export class ResponseReader {
  readonly #sink: AnswerSink;
  #state: State = 'whole';
  /** The beginning of a head or a line that has not ended yet. */
  #carry: Buffer | undefined;
  /** Bytes that are still to come of a body or a chunk. */
  #left = 0;
  #keepAlive = true;
  #interim = 0;
  /** The answer has become whole in this step. */
  #ended = false;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** A request has been sent, and its answer is to come. */
  expect(): void {
    this.#state = 'head';
    this.#interim = 0;
  }

  push(bytes: Buffer): string | undefined {
    let at = 0;
    while (at < bytes.length) {
      const next = this.#step(bytes, at);
      if (typeof next === 'string') {
        this.#state = 'broken';
        return next;
      }
      at = next;
      if (this.#ended) {
        this.#ended = false;
        // Bytes behind the answer belong to nothing that was asked: such a connection is not used again.
        this.#sink.onWhole(this.#keepAlive && at === bytes.length);
        return undefined;
      }
    }
    return undefined;
  }

  /** The connection has ended. */
  end(): string | undefined {
    if (this.#state === 'until-close') {
      this.#state = 'whole';
      this.#sink.onWhole(false);
    }
    return this.#state === 'whole' ? undefined : 'the connection ended before the answer was whole';
  }

  /** Goes on from `at`; gives where to go on next, or what is wrong. */
  #step(bytes: Buffer, at: number): number | string {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes, at);
      case 'length':
      case 'chunk': {
        const end = Math.min(bytes.length, at + this.#left);
        this.#left -= end - at;
        const last = this.#left === 0;
        if (last && this.#state === 'chunk') this.#state = 'chunk-end';
        this.#sink.onBody(bytes.subarray(at, end));
        if (last && this.#state === 'length') this.#whole();
        return end;
      }
      case 'chunk-line':
        return this.#readLine(bytes, at, (line) => this.#openChunk(line));
      case 'chunk-end':
        return this.#readLine(bytes, at, (line) => {
          if (line !== '') return 'a chunk is longer than it says';
          this.#state = 'chunk-line';
          return undefined;
        });
      case 'trailers':
        return this.#readLine(bytes, at, (line) => {
          if (line === '') this.#whole();
          return undefined;
        });
      case 'until-close':
        this.#sink.onBody(at === 0 ? bytes : bytes.subarray(at));
        return bytes.length;
      default:
        return 'bytes came that no request asked for';
    }
  }

  #readHead(bytes: Buffer, at: number): number | string {
    const carry = this.#carry;
    const from = carry ? Buffer.concat([carry, bytes.subarray(at)]) : bytes;
    const start = carry ? 0 : at;
    const end = from.indexOf(HEAD_END, carry ? Math.max(0, carry.length - 3) : at);
    if ((end < 0 ? from.length : end) - start > HEAD_BYTES_MAX) return 'the head is too long';
    if (end < 0) {
      this.#carry = carry ? from : Buffer.from(bytes.subarray(at));
      return bytes.length;
    }
    this.#carry = undefined;
    const fault = this.#openAnswer(from.toString('latin1', start, end));
    return fault ?? end + 4 - (carry?.length ?? 0) + (carry ? at : 0);
  }

  #openAnswer(head: string): string | undefined {
    const lineEnd = head.indexOf('\r\n');
    const statusLine = STATUS_LINE.exec(lineEnd < 0 ? head : head.slice(0, lineEnd));
    if (!statusLine) return 'the status line is not HTTP/1.1';
    const status = Number(statusLine[2]);
    const headers = readFields(lineEnd < 0 ? '' : head.slice(lineEnd + 2));
    if (typeof headers === 'string') return headers;
    if (status === 101) return 'the engine switched protocols without being asked';
    if (status < 200) return ++this.#interim > INTERIM_ANSWERS_MAX ? 'too many interim answers' : undefined;
    const connection = text(headers['connection']).toLowerCase();
    this.#keepAlive =
      statusLine[1] === '1' ? !/\bclose\b/.test(connection) : /\bkeep-alive\b/.test(connection);
    const fault = this.#frame(status, headers);
    if (fault !== undefined) return fault;
    const bodiless = this.#state === 'length' && this.#left === 0;
    this.#sink.onHead(status, headers);
    if (bodiless) this.#whole();
    return undefined;
  }

  /** How long the body is (RFC 9112, 6.3). */
  #frame(status: number, headers: UpstreamHeaders): string | undefined {
    const coding = headers['transfer-encoding'];
    const length = headers['content-length'];
    if (status === 204 || status === 304) {
      this.#expectLength(0);
    } else if (coding !== undefined) {
      if (length !== undefined) return 'the body has two framings';
      if (text(coding).toLowerCase() !== 'chunked') return 'the transfer coding is not chunked';
      this.#state = 'chunk-line';
    } else if (length !== undefined) {
      if (typeof length !== 'string' || !/^\d{1,15}$/.test(length))
        return 'the content length cannot be read';
      this.#expectLength(Number(length));
    } else {
      this.#state = 'until-close';
    }
    return undefined;
  }

  #expectLength(bytes: number): void {
    this.#state = 'length';
    this.#left = bytes;
  }

  #openChunk(line: string): string | undefined {
    const size = CHUNK_LINE.exec(line);
    if (!size) return 'the size of a chunk cannot be read';
    this.#left = Number.parseInt(size[1]!, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    return undefined;
  }

  /** Reads up to the next CRLF, and hands over what stands before it. */
  #readLine(bytes: Buffer, at: number, take: (line: string) => string | undefined): number | string {
    const end = bytes.indexOf(LF, at);
    const carried = this.#carry?.length ?? 0;
    if ((end < 0 ? bytes.length : end) - at + carried > CHUNK_LINE_BYTES_MAX)
      return 'a line between chunks is too long';
    if (end < 0) {
      const rest = bytes.subarray(at);
      this.#carry = this.#carry ? Buffer.concat([this.#carry, rest]) : Buffer.from(rest);
      return bytes.length;
    }
    let line: string;
    if (this.#carry) {
      const whole = Buffer.concat([this.#carry, bytes.subarray(at, end)]);
      this.#carry = undefined;
      if (whole[whole.length - 1] !== CR) return 'a line between chunks does not end with CRLF';
      line = whole.toString('latin1', 0, whole.length - 1);
    } else {
      if (end === at || bytes[end - 1] !== CR) return 'a line between chunks does not end with CRLF';
      line = bytes.toString('latin1', at, end - 1);
    }
    return take(line) ?? end + 1;
  }

  #whole(): void {
    this.#state = 'whole';
    this.#ended = true;
  }
}

function readFields(text: string): Record<string, string | string[]> | string {
  const headers: Record<string, string | string[]> = Object.create(null);
  if (text === '') return headers;
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    const name = colon < 0 ? '' : line.slice(0, colon);
    if (!FIELD_NAME.test(name)) return 'a header line cannot be read';
    const value = line.slice(colon + 1).trim();
    if (CONTROL.test(value)) return 'a header has control characters';
    const key = name.toLowerCase();
    const known = headers[key];
    if (known === undefined) headers[key] = value;
    else if (typeof known === 'string') headers[key] = [known, value];
    else known.push(value);
  }
  return headers;
}

function text(value: string | string[] | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : value.join(', ');
}
