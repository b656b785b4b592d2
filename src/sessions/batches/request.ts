import type { Failure } from '../../kernel/errors.ts';
import { invalid, readExpiry } from '../answers.ts';

/** The calls that a batch can make, by the address that its lines name as well. */
const ENDPOINTS = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses'] as const;

const WINDOW = '24h';
const WINDOW_MS = 86_400_000;
const METADATA_MAX = 16;
const METADATA_KEY_MAX = 64;
const METADATA_VALUE_MAX = 512;

/** What a batch is to be, as `POST /v1/batches` says it. */
export interface BatchRequest {
  endpoint: string;
  inputFile: string;
  completionWindow: string;
  windowMs: number;
  metadata: Record<string, string> | null;
  outputKeptMs: number | undefined;
}

export function readBatchRequest(body: Buffer): BatchRequest | Failure {
  const read = readObject(body);
  if (!read) return invalid('We could not parse the body of your request: expected a JSON object.');
  const { input_file_id: inputFile, endpoint, completion_window: window } = read;
  if (typeof inputFile !== 'string' || inputFile === '')
    return invalid("Expected 'input_file_id' to be the id of a file.", 'input_file_id');
  if (!(ENDPOINTS as readonly unknown[]).includes(endpoint))
    return invalid(`Expected 'endpoint' to be one of ${ENDPOINTS.join(', ')}.`, 'endpoint');
  if (window !== WINDOW) return invalid(`Expected 'completion_window' to be ${WINDOW}.`, 'completion_window');
  const metadata = readMetadata(read['metadata'] ?? null);
  if (metadata === undefined)
    return invalid(
      `Expected 'metadata' to have at most ${METADATA_MAX} members, with keys of up to ${METADATA_KEY_MAX} characters and texts of up to ${METADATA_VALUE_MAX}.`,
      'metadata',
    );
  let outputKeptMs: number | undefined;
  const expiry = read['output_expires_after'] ?? null;
  if (expiry !== null) {
    const { anchor, seconds } = typeof expiry === 'object' ? (expiry as Record<string, unknown>) : {};
    const kept = readExpiry(anchor, seconds, 'output_expires_after');
    if ('code' in kept) return kept;
    outputKeptMs = kept.keptMs;
  }
  return {
    endpoint: endpoint as string,
    inputFile,
    completionWindow: WINDOW,
    windowMs: WINDOW_MS,
    metadata,
    outputKeptMs,
  };
}

function readObject(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Record<string, unknown>;
  } catch {
    return undefined; // not JSON
  }
}

/** Undefined: it cannot be kept as metadata. */
function readMetadata(value: unknown): Record<string, string> | null | undefined {
  if (value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) return undefined;
  const members = Object.entries(value as object);
  const fits = ([key, text]: [string, unknown]) =>
    key.length <= METADATA_KEY_MAX && typeof text === 'string' && text.length <= METADATA_VALUE_MAX;
  return members.length <= METADATA_MAX && members.every(fits)
    ? (value as Record<string, string>)
    : undefined;
}
