import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import { pause, type Timers } from '../../kernel/timers.ts';
import type { Source } from './sources.ts';

/** A machine without the hub goes on to the next source after this. */
const CONNECT_MS = 3000;
const HEAD_MS = 15_000;
/** The longest pause within a download. */
const IDLE_MS = 30_000;
const REDIRECTS_MAX = 5;
/** A download that has begun and breaks off is gone on with, until so many attempts in a row have brought nothing. */
const FRUITLESS_MAX = 4;
/** Before each attempt that follows a fruitless one. */
const PAUSE_MS = 500;

export interface Fetching {
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  timers: Timers;
  /** Bytes that are here; the whole where it is known. */
  onProgress(bytes: number, total: number | undefined): void;
}

/** What the hub says of a file: the checksum of large ones. */
export interface HubFile {
  sha256: string | undefined;
}

/**
 * Fetches a file from the model hub into `part`, going on where a former download broke off. HF_ENDPOINT names another
 * hub, HF_TOKEN opens what is closed, the usual proxy variables hold. Throws in words for a person.
 */
export async function fetchFromHub(
  source: Extract<Source, { kind: 'hf' }>,
  part: string,
  fetching: Fetching,
): Promise<HubFile> {
  const agent = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_MS },
    headersTimeout: HEAD_MS,
    bodyTimeout: IDLE_MS,
  });
  try {
    let fruitless = 0;
    for (let begun = false; ; ) {
      const before = await bytesOf(part);
      try {
        return await download(agent, source, part, fetching);
      } catch (error) {
        const fruitful = (await bytesOf(part)) > before;
        begun ||= error instanceof BrokeOff;
        fruitless = fruitful ? 0 : fruitless + 1;
        const goOn = begun && !(error instanceof Refused) && fruitless < FRUITLESS_MAX;
        if (!goOn || fetching.signal.aborted) throw error;
      }
      if (fruitless > 0) await pause(fetching.timers, PAUSE_MS);
    }
  } finally {
    await agent.destroy();
  }
}

type Answer = Dispatcher.ResponseData<unknown>;

/** A transfer that began and did not end. */
class BrokeOff extends Error {}

/** The hub has answered, and will answer the same again. */
class Refused extends Error {}

async function download(
  agent: Dispatcher,
  source: Extract<Source, { kind: 'hf' }>,
  part: string,
  { env, signal, onProgress }: Fetching,
): Promise<HubFile> {
  const from = await bytesOf(part);
  const { response, sha256 } = await open(agent, source, from, env, signal);
  const { statusCode, headers, body } = response;
  if (statusCode === 416) {
    // All of it is here already, or more than there is: the checksum tells which.
    await body.dump();
    return { sha256 };
  }
  const resumed = statusCode === 206;
  let bytes = resumed ? from : 0;
  const length = Number(headers['content-length']);
  const total = Number.isFinite(length) ? bytes + length : undefined;
  body.on('data', (piece: Buffer) => {
    bytes += piece.length;
    onProgress(bytes, total);
  });
  try {
    await pipeline(body, createWriteStream(part, { flags: resumed ? 'a' : 'w' }), { signal });
  } catch (error) {
    throw new BrokeOff(`the transfer broke off at ${bytes} bytes: ${(error as Error).message}`);
  }
  return { sha256 };
}

/** Asks for the file, follows to where it really lies, and gives an answer with a body. */
async function open(
  agent: Dispatcher,
  { repository, revision, file }: Extract<Source, { kind: 'hf' }>,
  from: number,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<{ response: Answer; sha256: string | undefined }> {
  const hub = (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, '');
  const path = file.split('/').map(encodeURIComponent).join('/');
  let url = new URL(`${hub}/${repository}/resolve/${encodeURIComponent(revision)}/${path}`);
  const hubOrigin = url.origin;
  let sha256: string | undefined;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const headers: Record<string, string> = { 'user-agent': 'armature', 'accept-encoding': 'identity' };
    if (from > 0) headers.range = `bytes=${from}-`;
    // The token is for the hub alone, not for where its files are stored.
    if (env.HF_TOKEN && url.origin === hubOrigin) headers.authorization = `Bearer ${env.HF_TOKEN}`;
    const response = await ask(url, { dispatcher: agent, headers, signal });
    sha256 ??= checksumIn(response.headers);
    const { location } = response.headers;
    if (response.statusCode >= 300 && response.statusCode < 400 && typeof location === 'string') {
      await response.body.dump();
      url = new URL(location, url);
      continue;
    }
    if (response.statusCode === 200 || response.statusCode === 206 || response.statusCode === 416) {
      return { response, sha256 };
    }
    await response.body.dump();
    throw new Refused(`${url.host} answered ${response.statusCode}${hint(response.statusCode)}`);
  }
  throw new Refused(`${hub} redirects more than ${REDIRECTS_MAX} times`);
}

async function ask(url: URL, options: Parameters<typeof request>[1]): Promise<Answer> {
  try {
    return await request(url, options);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(`${url.host} cannot be reached (${code ?? message})`);
  }
}

/** The hub tells the SHA-256 of large files; the entity tag of small ones is of another kind. */
function checksumIn(headers: Answer['headers']): string | undefined {
  for (const name of ['x-linked-etag', 'etag']) {
    const value = String(headers[name] ?? '').replace(/^W\/|"/g, '');
    if (/^[0-9a-f]{64}$/.test(value)) return value;
  }
  return undefined;
}

function hint(status: number): string {
  if (status === 401 || status === 403) return ': it wants HF_TOKEN, with access to this repository';
  if (status === 404) return ': no such file';
  return '';
}

async function bytesOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
