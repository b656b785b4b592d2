import type { Json } from '../../protocols/json-object.ts';
import { readExpiry } from '../answers.ts';
import { readObject } from '../body.ts';
import { given, metadataOf, optionalObject, Refused } from '../refused.ts';

/** The calls that a batch can make, by the address that its lines name as well. */
const ENDPOINTS = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses'] as const;

const WINDOW = '24h';
const WINDOW_MS = 86_400_000;

/** What a batch is to be, as `POST /v1/batches` says it. */
export interface BatchRequest {
  endpoint: string;
  inputFile: string;
  completionWindow: string;
  windowMs: number;
  metadata: Record<string, string> | null;
  outputKeptMs: number | undefined;
}

/** Throws Refused. */
export function readBatchRequest(bytes: Buffer): BatchRequest {
  const body = readObject(bytes);
  const inputFile = given(body, 'input_file_id');
  if (typeof inputFile !== 'string' || inputFile === '')
    throw new Refused("Expected 'input_file_id' to be the id of a file.", 'input_file_id');
  const endpoint = given(body, 'endpoint');
  if (!(ENDPOINTS as readonly unknown[]).includes(endpoint))
    throw new Refused(`Expected 'endpoint' to be one of ${ENDPOINTS.join(', ')}.`, 'endpoint');
  if (given(body, 'completion_window') !== WINDOW)
    throw new Refused(`Expected 'completion_window' to be ${WINDOW}.`, 'completion_window');
  return {
    endpoint: endpoint as string,
    inputFile,
    completionWindow: WINDOW,
    windowMs: WINDOW_MS,
    metadata: metadataOf(body) ?? null,
    outputKeptMs: readOutputKept(body),
  };
}

function readOutputKept(body: Json): number | undefined {
  const param = 'output_expires_after';
  const expiry = optionalObject(body, param);
  if (expiry === undefined) return undefined;
  const kept = readExpiry(expiry['anchor'], expiry['seconds'], param);
  if ('code' in kept) throw new Refused(kept.message, param);
  return kept.keptMs;
}
