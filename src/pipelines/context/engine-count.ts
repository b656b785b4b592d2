import type { Backend, Endpoint, TransportError, UpstreamHeaders } from '../../gateway/contracts.ts';
import type { Messages, Rest } from './prompt.ts';

/** How an engine is asked for the tokens of a chat; see Dialect. */
export type TokenizeKind = 'vllm' | 'llama.cpp';

export interface EngineCount {
  tokens: number;
  /** The engine's own window, where it says so. */
  window: number | undefined;
}

/** The longest answer that is read: a number of four bytes or so for each token. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Asks the engine itself how many tokens the prompt of a chat has, as it would make it: vLLM's `/tokenize` takes messages;
 * llama.cpp's server makes a prompt of them by `/apply-template`, and tokens of that by `/tokenize`. Calls back once, with why
 * where it did not tell; never once the returned function was called.
 */
export function askEngine(
  kind: TokenizeKind,
  to: { backend: Backend; endpoint: Endpoint },
  messages: Messages,
  rest: Rest,
  done: (result: EngineCount | string) => void,
): () => void {
  const { tools, chat_template_kwargs } = rest;
  const more = { ...(tools ? { tools } : {}), ...(chat_template_kwargs ? { chat_template_kwargs } : {}) };
  if (kind === 'vllm') {
    const body = { model: to.backend.model, messages, add_generation_prompt: true, ...more };
    return post(to, '/tokenize', body, (answer) => {
      if (typeof answer === 'string') done(answer);
      else if (typeof answer.count !== 'number') done('its answer has no count');
      else done({ tokens: answer.count, window: positive(answer.max_model_len) });
    });
  }
  let second: (() => void) | undefined;
  const first = post(to, '/apply-template', { messages, ...more }, (prompted) => {
    if (typeof prompted === 'string') done(prompted);
    else if (typeof prompted.prompt !== 'string') done('its answer has no prompt');
    else {
      const body = { content: prompted.prompt, add_special: true, parse_special: true };
      second = post(to, '/tokenize', body, (answer) => {
        if (typeof answer === 'string') done(answer);
        else if (!Array.isArray(answer.tokens)) done('its answer has no tokens');
        else done({ tokens: answer.tokens.length, window: undefined });
      });
    }
  });
  return () => (second ?? first)();
}

/** Asks llama.cpp's server for the window of one of its slots. */
export function askWindow(
  to: { backend: Backend; endpoint: Endpoint },
  done: (window: number | undefined) => void,
): () => void {
  return call(to, 'GET', '/props', undefined, (answer) => {
    if (typeof answer === 'string') done(undefined);
    else {
      const settings = answer.default_generation_settings as { n_ctx?: unknown } | undefined;
      done(positive(settings?.n_ctx));
    }
  });
}

type Answer = Record<string, unknown>;

function post(
  to: { backend: Backend; endpoint: Endpoint },
  path: string,
  body: object,
  done: (answer: Answer | string) => void,
): () => void {
  return call(to, 'POST', path, JSON.stringify(body), done);
}

function call(
  { backend, endpoint }: { backend: Backend; endpoint: Endpoint },
  method: string,
  path: string,
  body: string | undefined,
  done: (answer: Answer | string) => void,
): () => void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let status = 0;
  let over = false;
  const end = (answer: Answer | string) => {
    if (over) return;
    over = true;
    done(answer);
  };
  const headers = ['accept', 'application/json', 'accept-encoding', 'identity', ...backend.authHeaders];
  if (body !== undefined) headers.push('content-type', 'application/json');
  const base = endpoint.basePath.replace(/\/v1$/, '');
  const flight = endpoint.transport.send(
    { method, path: base + path, headers, body, fresh: false },
    {
      onSent() {},
      onHead(got: number, _headers: UpstreamHeaders) {
        status = got;
      },
      onData(piece: Buffer) {
        bytes += piece.length;
        if (bytes <= ANSWER_BYTES_MAX) pieces.push(piece);
        else end('its answer is too long');
      },
      onEnd() {
        if (status !== 200) end(`it answered ${status}`);
        else end(read(Buffer.concat(pieces)));
      },
      onError(error: TransportError) {
        end(error.message);
      },
    },
  );
  return () => {
    over = true;
    flight.abort();
  };
}

function read(body: Buffer): Answer | string {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Answer) : 'its answer is no object';
  } catch {
    return 'its answer is no JSON';
  }
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 ? value : undefined;
}
