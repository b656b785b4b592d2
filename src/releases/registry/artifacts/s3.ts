import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { S3mini, S3ServiceError, type UploadPart } from 's3mini';
import { ArtifactError, type ArtifactStore, type Progress } from './contracts.ts';

/** A file up to so many bytes goes in one request; a larger one in parts of at least so many, at most PARTS_MAX of them. */
const PART_BYTES = 16 * 1024 * 1024;
const PARTS_MAX = 10_000;
/** How often a part is sent before it is given up. */
const TRIES_MAX = 3;

export interface S3Settings {
  bucket: string;
  /** Before every key, without slashes around it; may be empty. */
  prefix: string;
  /** Such as `https://s3.eu-central-1.amazonaws.com`; the bucket is asked for as a part of the path. */
  endpoint: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** Content in a bucket of S3-style storage. An object appears when it is whole; parts of what failed are taken back. */
export function s3Store({ bucket, prefix, endpoint, region, ...credentials }: S3Settings): ArtifactStore {
  const client = new S3mini({ ...credentials, region, endpoint: `${endpoint}/${bucket}` });
  const name = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
  const full = (key: string) => (prefix === '' ? key : `${prefix}/${key}`);
  return {
    name,
    async put(key, path, progress = {}) {
      try {
        await upload(client, full(key), path, progress);
      } catch (error) {
        throw troubleOf(error, `${name}/${key}`);
      }
    },
    async open(key) {
      try {
        const answer = await client.getObjectResponse(full(key));
        if (!answer?.body) throw new ArtifactError('missing', `${name}/${key} is not there`);
        const content = Readable.fromWeb(answer.body as ReadableStream);
        return { bytes: Number(answer.headers.get('content-length')), content };
      } catch (error) {
        throw troubleOf(error, `${name}/${key}`);
      }
    },
    async has(key) {
      try {
        return (await client.objectExists(full(key))) === true;
      } catch (error) {
        throw troubleOf(error, `${name}/${key}`);
      }
    },
    async remove(key) {
      try {
        await client.deleteObject(full(key));
      } catch (error) {
        throw troubleOf(error, `${name}/${key}`);
      }
    },
  };
}

async function upload(
  client: S3mini,
  key: string,
  path: string,
  { onBytes, signal }: Progress,
): Promise<void> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const partBytes = Math.max(PART_BYTES, Math.ceil(size / PARTS_MAX));
    const part = async (at: number) => {
      const bytes = Buffer.alloc(Math.min(partBytes, size - at));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, at);
      if (bytesRead < bytes.length) throw new ArtifactError('damaged', `${path} became shorter`);
      return bytes;
    };
    if (size <= partBytes) {
      const bytes = await part(0);
      await again(signal, () =>
        client.putObject(key, bytes, 'application/octet-stream', undefined, undefined, size),
      );
      onBytes?.(size);
      return;
    }
    const id = await again(signal, () => client.getMultipartUploadId(key, 'application/octet-stream'));
    try {
      const parts: UploadPart[] = [];
      for (let at = 0; at < size; at += partBytes) {
        const bytes = await part(at);
        parts.push(await again(signal, () => client.uploadPart(key, id, bytes, parts.length + 1)));
        onBytes?.(at + bytes.length);
      }
      await again(signal, () => client.completeMultipartUpload(key, id, parts));
    } catch (error) {
      // What cannot be taken back either, the storage's own rules for unfinished uploads remove.
      await client.abortMultipartUpload(key, id).catch(() => undefined);
      throw error;
    }
  } finally {
    await file.close();
  }
}

/** A request that failed in a way that passes is made again at once: the storage's own limits bound how fast that is. */
async function again<Result>(signal: AbortSignal | undefined, ask: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      const passes = !(error instanceof S3ServiceError) || error.status >= 500 || error.status === 429;
      if (!passes || tries === TRIES_MAX) throw error;
    }
  }
}

/** In words, without what was signed: the client's own errors name keys and codes alone. */
function troubleOf(error: unknown, place: string): ArtifactError {
  if (error instanceof ArtifactError) return error;
  const { name, message } = error as Error;
  if (name === 'AbortError')
    return new ArtifactError('unreachable', `${place}: it was stopped`, { cause: error });
  const status =
    error instanceof S3ServiceError ? `${error.status} ${error.serviceCode ?? ''}`.trim() : message;
  return new ArtifactError('unreachable', `${place}: the storage answered ${status}`, { cause: error });
}
