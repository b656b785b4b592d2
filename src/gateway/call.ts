import { ERRORS, type Failure } from '../kernel/errors.ts';
import { readOipPath } from '../protocols/oip/paths.ts';
import { type OipRequest, readOipRequest } from '../protocols/oip/request.ts';
import { type OpenaiRequest, readOpenaiRequest } from '../protocols/openai/request.ts';
import type { Caller } from './contracts.ts';

/** What a caller asks for, as far as the gateway has to know. */
export type Call = OpenaiCall | OipModelCall;

export interface OpenaiCall {
  protocol: 'openai';
  kind: 'chat' | 'completions' | 'embeddings';
  /** Behind the address of an endpoint. */
  path: string;
  route: string;
  stream: boolean;
  request: OpenaiRequest;
}

export interface OipModelCall {
  protocol: 'oip';
  kind: 'infer' | 'model' | 'model-ready';
  route: string;
  stream: false;
  version: string | undefined;
  /** Value of Inference-Header-Content-Length, where the caller sent one. */
  headerLength: string | undefined;
  request: OipRequest | undefined;
}

/** A call that the gateway answers by itself. */
export type OwnCall =
  | { own: 'models' }
  | { own: 'model'; name: string }
  | { own: 'oip-live' | 'oip-ready' | 'oip-server' };

/** A call on an endpoint whose meaning is stored state; who keeps the state reads the rest of it. */
export interface StatefulCall {
  stateful: 'responses' | 'conversations' | 'files' | 'batches';
  /** Without its query. */
  path: string;
}

const STATEFUL = /^\/v1\/(responses|conversations|files|batches)(?:\/|$)/;

const OPENAI_CALLS: Record<string, OpenaiCall['kind']> = {
  '/v1/chat/completions': 'chat',
  '/v1/completions': 'completions',
  '/v1/embeddings': 'embeddings',
};

/** Reads the call from path, method, headers and body. */
export function readCall(caller: Caller): Call | OwnCall | StatefulCall | Failure {
  const query = caller.target.indexOf('?');
  const path = query < 0 ? caller.target : caller.target.slice(0, query);
  const kind = OPENAI_CALLS[path];
  if (kind)
    return caller.method === 'POST' ? readOpenaiCall(caller, kind, path) : wrongMethod(caller, 'POST');
  if (path === '/v1/models') return isGet(caller) ? { own: 'models' } : wrongMethod(caller, 'GET');
  if (path.startsWith('/v1/models/')) return isGet(caller) ? readModelPath(path) : wrongMethod(caller, 'GET');
  if (path === '/v2' || path.startsWith('/v2/')) return readOipCall(caller, path);
  const stateful = STATEFUL.exec(path)?.[1] as StatefulCall['stateful'] | undefined;
  if (stateful) return { stateful, path };
  return notFound(`There is nothing at ${caller.method} ${path.slice(0, 200)}.`);
}

/** Whether errors on this path are told as the Open Inference Protocol tells them. */
export function isOipTarget(target: string): boolean {
  return /^\/v2(?:[/?]|$)/.test(target);
}

function readOpenaiCall(caller: Caller, kind: OpenaiCall['kind'], path: string): OpenaiCall | Failure {
  if (isCompressed(caller)) return invalid('Compressed request bodies are not read.');
  const request = readOpenaiRequest(caller.body);
  if ('message' in request) return invalid(request.message, request.param);
  const stream = request.stream && kind !== 'embeddings';
  return { protocol: 'openai', kind, path: path.slice('/v1'.length), route: request.model, stream, request };
}

function readOipCall(caller: Caller, path: string): OipModelCall | OwnCall | Failure {
  const read = readOipPath(path);
  if (!read) return notFound(`there is nothing at ${caller.method} ${path.slice(0, 200)}`);
  const method = read.call === 'infer' ? 'POST' : 'GET';
  if (method === 'GET' ? !isGet(caller) : caller.method !== method) return wrongMethod(caller, method);
  if (!('model' in read)) return { own: `oip-${read.call}` };
  const headerLength = caller.header('inference-header-content-length');
  let request: OipRequest | undefined;
  if (read.call === 'infer') {
    if (isCompressed(caller)) return invalid('compressed request bodies are not read');
    const result = readOipRequest(caller.body, headerLength);
    if (typeof result === 'string') return invalid(result);
    request = result;
  }
  return {
    protocol: 'oip',
    kind: read.call,
    route: read.model,
    stream: false,
    version: read.version,
    headerLength: read.call === 'infer' ? headerLength : undefined,
    request,
  };
}

function readModelPath(path: string): OwnCall | Failure {
  try {
    return { own: 'model', name: decodeURIComponent(path.slice('/v1/models/'.length)) };
  } catch {
    return notFound('The path has a broken percent escape.');
  }
}

export function isCompressed(caller: Caller): boolean {
  const coding = caller.header('content-encoding');
  return coding !== undefined && coding.toLowerCase() !== 'identity';
}

export function isGet(caller: Caller): boolean {
  return caller.method === 'GET' || caller.method === 'HEAD';
}

function wrongMethod(caller: Caller, allowed: string): Failure {
  return {
    ...notFound(`${caller.method} is not allowed here; use ${allowed}.`),
    status: 405,
    allow: allowed === 'GET' ? 'GET, HEAD' : allowed,
  };
}

function notFound(message: string): Failure {
  return { code: 'not_found', message, phase: 'before-queue', status: ERRORS.not_found.status };
}

function invalid(message: string, param?: string): Failure {
  return {
    code: 'invalid_request',
    message,
    phase: 'before-queue',
    ...(param === undefined ? {} : { param }),
  };
}
