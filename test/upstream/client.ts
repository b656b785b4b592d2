import { connect, type Socket } from 'node:net';
import { Answer, AnswerReader } from './answer.ts';
import type { Headers } from './exchange.ts';
import { within } from './waiting.ts';

export { Answer } from './answer.ts';

export interface Ask {
  method?: string;
  path: string;
  /** Bytes and text go out as they are, anything else as JSON. */
  body?: unknown;
  headers?: Headers;
}

/** A request as bytes. `host`, `content-type` and `content-length` are added where they are not given. */
function render({ method = 'POST', path, body, headers = [] }: Ask): Buffer {
  const bytes = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(asText(body));
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const lines = [`${method} ${path} HTTP/1.1`];
  if (!given.has('host')) lines.push('Host: localhost');
  if (bytes !== undefined && !given.has('content-type')) lines.push('Content-Type: application/json');
  if (bytes !== undefined && !given.has('content-length') && !given.has('transfer-encoding')) {
    lines.push(`Content-Length: ${bytes.length}`);
  }
  lines.push(...headers.map(([name, value]) => `${name}: ${value}`));
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return bytes === undefined ? head : Buffer.concat([head, bytes]);
}

function asText(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}

/** One connection that sends exact bytes and reads answers as they come. */
export class RawClient implements Disposable {
  /** The other side has closed the connection, by FIN or reset. */
  closed = false;
  #socket: Socket;
  #reader = new AnswerReader();
  #whenClosed = Promise.withResolvers<void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => this.#reader.feed(bytes));
    socket.on('end', () => this.#end('closed'));
    socket.on('error', (error) => this.#end(error.message));
    socket.on('close', () => this.#end('closed'));
  }

  static async open(port: number, host = '127.0.0.1'): Promise<RawClient> {
    const socket = connect({ port, host, noDelay: true, allowHalfOpen: true });
    await within(
      `a connection to port ${port}`,
      5000,
      new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
      }),
    );
    return new RawClient(socket);
  }

  /** Sends a request and gives its answer, which grows as bytes come. Requests may be sent one behind the other. */
  request(ask: Ask): Answer {
    const answer = this.expect(ask.method ?? 'POST');
    this.send(render(ask));
    return answer;
  }

  /** The next answer on this connection, to a request that is sent by `send`. */
  expect(method = 'POST'): Answer {
    const answer = new Answer(method);
    this.#reader.expected.push(answer);
    if (this.closed) this.#reader.end('closed');
    return answer;
  }

  send(bytes: Buffer | string): void {
    this.#socket.write(bytes);
  }

  /** Says that no more will be sent; goes on reading. */
  halfClose(): void {
    this.#socket.end();
  }

  /** Stops reading, so that the other side's buffers fill. */
  pause(): void {
    this.#socket.pause();
  }
  resume(): void {
    this.#socket.resume();
  }

  leave(how: 'fin' | 'reset'): void {
    if (how === 'reset') this.#socket.resetAndDestroy();
    else this.#socket.destroy();
  }

  /** Waits for the other side to close. */
  whenClosed(withinMs: number): Promise<void> {
    return within('the connection is closed by the other side', withinMs, this.#whenClosed.promise);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #end(fault: string): void {
    if (this.closed) return;
    this.closed = true;
    this.#reader.end(fault);
    this.#whenClosed.resolve();
  }
}

/** One request on a connection of its own. Never throws: `fault` says what went wrong, also when nothing listens. */
export async function ask(port: number, request: Ask, withinMs = 10_000): Promise<Answer> {
  let client: RawClient;
  try {
    client = await RawClient.open(port);
  } catch (error) {
    const answer = new Answer(request.method ?? 'POST');
    answer.fault = error instanceof Error ? error.message : String(error);
    return answer;
  }
  using open = client;
  return await open.request(request).whole(withinMs);
}
