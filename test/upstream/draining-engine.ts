import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * An engine in a process of its own that leaves in good order: `node draining-engine.ts PORT MANNER`. It says `serving` once
 * it does. On SIGTERM it finishes what it has, and by its manner
 * - `closes`: takes no further connections, and closes those that are idle, as most servers do;
 * - `busy`: answers 503 for a while first;
 * - `lingers`: takes no further connections, but goes on for a while with requests on those it has, and closes each of
 *   them with its answer.
 */
const [port, manner] = [Number(process.argv[2]), process.argv[3]];
const PIECES = 10;
const PIECE_MS = 15;
const WHOLE_MS = 80;
const BEFORE_LEAVING_MS = 300;

let leaving = false;

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('end', () => {
    if (request.method !== 'POST') response.end('{"data":[]}');
    else if (leaving && manner === 'busy')
      response.writeHead(503).end('{"error":{"message":"shutting down"}}');
    else void answer(response, JSON.parse(Buffer.concat(pieces).toString()) as { stream?: boolean });
  });
  if (leaving && manner !== 'busy') response.setHeader('connection', 'close');
  response.on(
    'finish',
    () => leaving && manner !== 'busy' && setImmediate(() => server.closeIdleConnections()),
  );
});

async function answer(response: ServerResponse, { stream = false }): Promise<void> {
  if (!stream) {
    await pause(WHOLE_MS);
    const message = { role: 'assistant', content: 'Hello' };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ choices, usage }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (let at = 0; at <= PIECES; at++) {
    await pause(PIECE_MS);
    const last = at === PIECES;
    const choice = {
      index: 0,
      delta: last ? {} : { content: `${at} ` },
      finish_reason: last ? 'stop' : null,
    };
    response.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`);
  }
  response.end('data: [DONE]\n\n');
}

process.once('SIGTERM', async () => {
  leaving = true;
  if (manner === 'busy') await pause(BEFORE_LEAVING_MS);
  const closed = new Promise((resolve) => server.close(resolve));
  if (manner === 'lingers') await pause(BEFORE_LEAVING_MS);
  server.closeIdleConnections();
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  await closed;
  clearInterval(sweep);
  process.exit(0);
});

server.listen(port, '127.0.0.1', () => console.log('serving'));
