import type { Script } from './engine.ts';
import type { Exchange, Headers } from './exchange.ts';
import type { Json } from './sse.ts';

/** Answers as engines give them, and scripts made of them. */

const ENGINE_MODEL = 'engine-model';
const CREATED = 1_700_000_000;

function usageOf(tokensIn: number, tokensOut: number): Json {
  return { prompt_tokens: tokensIn, completion_tokens: tokensOut, total_tokens: tokensIn + tokensOut };
}

export function chatAnswer(text = 'Hello there', more: Record<string, unknown> = {}): Json {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: CREATED,
    model: ENGINE_MODEL,
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: usageOf(5, 2),
    ...more,
  };
}

/** One event of a stream. */
export function chunk(
  delta: unknown = {},
  finish: string | null = null,
  more: Record<string, unknown> = {},
): Json {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: CREATED,
    model: ENGINE_MODEL,
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  };
}

/** The event that carries usage and nothing else; it comes last, and only when asked for. */
export function usageChunk(tokensIn = 5, tokensOut = 2): Json {
  return { ...chunk(), choices: [], usage: usageOf(tokensIn, tokensOut) };
}

/** The events of a whole answer: the role, one for each piece, the finish reason. */
export function textChunks(pieces: readonly string[]): Json[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map((piece) => chunk({ content: piece })),
    chunk({}, 'stop'),
  ];
}

export interface ChatOptions {
  /** Milliseconds between two events. */
  gapMs?: number;
  /** False: no usage chunk even when asked. */
  usage?: boolean;
  eol?: '\n' | '\r\n';
}

/** Answers a chat with these pieces: as a stream when asked for one, else whole. */
export function chat(pieces: readonly string[] = ['Hel', 'lo ', 'there'], options: ChatOptions = {}): Script {
  return async (x) => {
    if (!x.request.stream) return x.json(chatAnswer(pieces.join('')));
    await x.sseHead();
    for (const object of textChunks(pieces)) {
      await x.event(object, options.eol);
      if (options.gapMs) await x.pause(options.gapMs);
    }
    if (options.usage !== false && x.request.wantsUsage) await x.event(usageChunk(), options.eol);
    await x.event('[DONE]', options.eol);
    await x.end();
  };
}

/** A stream that never ends by itself, an event each `gapMs`. */
export function endless(gapMs = 20): Script {
  return async (x) => {
    if (!x.request.stream) await x.hang();
    await x.sseHead();
    await x.event(chunk({ role: 'assistant', content: '' }));
    for (let i = 0; ; i++) {
      await x.event(chunk({ content: `t${i} ` }));
      await x.pause(gapMs);
    }
  };
}

/** Streams these pieces and then breaks off: no finish reason, no `[DONE]`. */
export function cutStream(pieces: readonly string[], how: 'fin' | 'reset'): Script {
  return async (x) => {
    await x.sseHead();
    for (const object of textChunks(pieces).slice(0, -1)) await x.event(object);
    if (how === 'fin') x.fin();
    else x.reset();
  };
}

/** Sends exactly these pieces as the body of a stream, each as a write of its own. */
export function rawStream(
  pieces: readonly (Buffer | string)[],
  framing: 'chunked' | 'close' = 'chunked',
): Script {
  return async (x) => {
    await x.sseHead([], framing);
    for (const piece of pieces) await x.body(piece);
    await x.end();
  };
}

/** Answers after a delay before the first byte. */
export function delayed(delayMs: number, then: Script = answerByPath): Script {
  return async (x) => {
    await x.pause(delayMs);
    await then(x);
  };
}

export function failWith(status: number, headers: Headers = [], body?: unknown): Script {
  return (x) => {
    const error = { message: `engine says ${status}`, type: 'engine_error', param: null, code: null };
    return x.json(body ?? { error }, { status, headers });
  };
}

/** Takes the request and never says a byte. */
export const never: Script = (x) => x.hang();

export const reset: Script = async (x) => x.reset();

/** Sends the head of a stream and never a byte of its body. */
export const headOnly: Script = async (x) => {
  await x.sseHead();
  await x.hang();
};

export const nonsense: Script = async (x) => {
  await x.send('SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\r\n');
  x.fin();
};

/** A script for each request in turn; the last one for all that follow. */
export function inTurn(...scripts: [Script, ...Script[]]): Script {
  let turn = 0;
  return (x) => scripts[Math.min(turn++, scripts.length - 1)]!(x);
}

function completion(x: Exchange): Promise<void> {
  return x.json({
    id: 'cmpl-1',
    object: 'text_completion',
    created: CREATED,
    model: ENGINE_MODEL,
    choices: [{ index: 0, text: 'Hello', finish_reason: 'stop', logprobs: null }],
    usage: usageOf(1, 1),
  });
}

/** One vector for each input; base64 of little-endian floats where asked, as the official clients do. */
function embeddings(x: Exchange): Promise<void> {
  const body = x.request.json();
  const inputs: unknown[] =
    Array.isArray(body.input) && typeof body.input[0] !== 'number' ? body.input : [body.input];
  const vector = new Float32Array([0.25, -0.5]);
  const data = inputs.map((_, index) => ({
    object: 'embedding',
    index,
    embedding:
      body.encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector),
  }));
  return x.json({ object: 'list', model: ENGINE_MODEL, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
}

/** Echoes each input tensor as an output of the same name: JSON for JSON, raw bytes for raw bytes. */
export const oipEcho: Script = async (x) => {
  const { body } = x.request;
  const declared = x.request.header('inference-header-content-length');
  const jsonBytes = declared === undefined ? body.length : Number(declared);
  if (jsonBytes > body.length) return x.json({ error: 'header length beyond body' }, { status: 400 });
  if (jsonBytes === 0) return rawEcho(x, body);
  const request: Json = JSON.parse(body.subarray(0, jsonBytes).toString());
  const answer = {
    model_name: ENGINE_MODEL,
    model_version: '1',
    ...(request.id === undefined ? {} : { id: request.id }),
    outputs: request.inputs.map(({ name, datatype, shape, data, parameters }: Json) =>
      parameters?.binary_data_size === undefined
        ? { name, datatype, shape, data }
        : { name, datatype, shape, parameters: { binary_data_size: parameters.binary_data_size } },
    ),
  };
  if (declared === undefined) return x.json(answer);
  return binaryAnswer(x, answer, body.subarray(jsonBytes));
};

function rawEcho(x: Exchange, tensor: Buffer): Promise<void> {
  const output = {
    name: 'y',
    datatype: 'BYTES',
    shape: [1],
    parameters: { binary_data_size: tensor.length },
  };
  return binaryAnswer(x, { model_name: ENGINE_MODEL, model_version: '1', outputs: [output] }, tensor);
}

function binaryAnswer(x: Exchange, header: Json, tensors: Buffer): Promise<void> {
  const json = Buffer.from(JSON.stringify(header));
  return x.whole(Buffer.concat([json, tensors]), 200, [
    ['Content-Type', 'application/octet-stream'],
    ['Inference-Header-Content-Length', String(json.length)],
  ]);
}

/** A plain answer for each call that engines know. */
export const answerByPath: Script = async (x) => {
  const { path } = x.request;
  if (path.endsWith('/chat/completions')) return chat()(x);
  if (path.endsWith('/completions')) return completion(x);
  if (path.endsWith('/embeddings')) return embeddings(x);
  if (path.endsWith('/infer')) return oipEcho(x);
  const error = { message: `no such path ${path}`, type: 'invalid_request_error', param: null, code: null };
  return x.json({ error }, { status: 404 });
};

const GAUGES = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="${ENGINE_MODEL}"} 0
vllm:num_requests_waiting{model_name="${ENGINE_MODEL}"} 0
vllm:kv_cache_usage_perc{model_name="${ENGINE_MODEL}"} 0.1
`;

/** What a well engine says to probes, lists of models and scrapes of its gauges. */
export const answerProbes: Script = async (x) => {
  const { path } = x.request;
  if (path.endsWith('/models')) {
    return x.json({
      object: 'list',
      data: [{ id: ENGINE_MODEL, object: 'model', created: 1, owned_by: 'engine' }],
    });
  }
  if (path.endsWith('/metrics')) {
    return x.whole(Buffer.from(GAUGES), 200, [['Content-Type', 'text/plain; version=0.0.4']]);
  }
  if (/models\/[^/]+(\/versions\/[^/]+)?$/.test(path)) {
    const tensor = { datatype: 'FP32', shape: [-1] };
    const inputs = [{ name: 'x', ...tensor }];
    const outputs = [{ name: 'y', ...tensor }];
    return x.json({ name: ENGINE_MODEL, versions: ['1'], platform: 'scripted', inputs, outputs });
  }
  return x.json({
    status: 'ok',
    live: true,
    ready: true,
    name: 'scripted',
    version: '1',
    extensions: ['binary_tensor_data'],
  });
};
