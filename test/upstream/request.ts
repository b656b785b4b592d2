import type { Socket } from 'node:net';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ByteReader } from './reader.ts';
import type { Json } from './sse.ts';

/** A request as it came over the wire. Times are `mono` milliseconds of the system clock. */
export class ReceivedRequest {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly rawHead: Buffer;
  /** As on the wire, chunk framing included. */
  rawBody: Buffer = Buffer.alloc(0);
  /** With chunk framing undone. */
  body: Buffer = Buffer.alloc(0);
  complete = false;
  /** Which of the engine's connections it came on, counted from 1, and the how-manieth on it, counted from 0. */
  readonly connection: number;
  readonly sequence: number;
  readonly headAtMs: number = systemClock.mono();
  completeAtMs: number | undefined;
  /** When the first byte of the answer was written. */
  answeredAtMs: number | undefined;
  /** When the answer was written whole. */
  finishedAtMs: number | undefined;
  /** When the caller went away before the answer was whole. */
  goneAtMs: number | undefined;

  constructor(rawHead: Buffer, connection: number, sequence: number) {
    this.rawHead = rawHead;
    this.connection = connection;
    this.sequence = sequence;
    const [first = '', ...lines] = rawHead.subarray(0, -4).toString('latin1').split('\r\n');
    this.method = first.slice(0, first.indexOf(' '));
    this.target = first.slice(first.indexOf(' ') + 1, first.lastIndexOf(' '));
    this.headers = lines.map((line) => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]);
  }

  /** Without the query. */
  get path(): string {
    return this.target.split('?')[0]!;
  }
  header(name: string): string | undefined {
    return this.headerAll(name)[0];
  }
  headerAll(name: string): string[] {
    return this.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  }
  json(): Json {
    return JSON.parse(this.body.toString());
  }
  /** Whether the body is JSON that asks for a stream. */
  get stream(): boolean {
    return this.#member((body) => body.stream === true);
  }
  get wantsUsage(): boolean {
    return this.#member((body) => body.stream_options?.include_usage === true);
  }

  #member(test: (body: Json) => boolean): boolean {
    if (this.body[0] !== 0x7b) return false;
    try {
      return test(this.json());
    } catch (error) {
      if (error instanceof SyntaxError) return false; // a body that is no JSON asks for nothing
      throw error;
    }
  }
}

/**
 * Reads the next request. `seen` is told of it once its head is there, so that one whose body never comes is known too.
 * Undefined when the caller left before the request was whole.
 */
export async function readRequest(
  reader: ByteReader,
  socket: Socket,
  connection: number,
  sequence: number,
  seen: (request: ReceivedRequest) => void,
): Promise<ReceivedRequest | undefined> {
  const head = await reader.through('\r\n\r\n');
  if (head === undefined) return undefined;
  const request = new ReceivedRequest(head, connection, sequence);
  seen(request);
  if (request.header('expect')?.toLowerCase() === '100-continue')
    socket.write('HTTP/1.1 100 Continue\r\n\r\n');
  const chunked = request.header('transfer-encoding')?.toLowerCase().includes('chunked') ?? false;
  const whole = chunked
    ? await readChunks(reader, request)
    : await readLength(reader, request, Number(request.header('content-length') ?? 0));
  if (!whole) {
    request.goneAtMs = reader.endedAtMs;
    return undefined;
  }
  request.complete = true;
  request.completeAtMs = systemClock.mono();
  return request;
}

async function readLength(reader: ByteReader, request: ReceivedRequest, length: number): Promise<boolean> {
  const body = await reader.exactly(length);
  if (body === undefined) return false;
  request.body = body;
  request.rawBody = body;
  return true;
}

async function readChunks(reader: ByteReader, request: ReceivedRequest): Promise<boolean> {
  const raw: Buffer[] = [];
  const pieces: Buffer[] = [];
  for (let last = false; !last; ) {
    const line = await reader.through('\r\n');
    if (line === undefined) return false;
    const size = Number.parseInt(line.toString('latin1'), 16);
    if (Number.isNaN(size)) throw new Error(`not a chunk head: ${JSON.stringify(line.toString('latin1'))}`);
    last = size === 0;
    // After the last chunk come trailers, which end with an empty line.
    const rest = last ? await readTrailers(reader) : await reader.exactly(size + 2);
    if (rest === undefined) return false;
    raw.push(line, rest);
    if (!last) pieces.push(rest.subarray(0, -2));
  }
  request.rawBody = Buffer.concat(raw);
  request.body = Buffer.concat(pieces);
  return true;
}

async function readTrailers(reader: ByteReader): Promise<Buffer | undefined> {
  const lines: Buffer[] = [];
  for (;;) {
    const line = await reader.through('\r\n');
    if (line === undefined) return undefined;
    lines.push(line);
    if (line.length === 2) return Buffer.concat(lines);
  }
}
