import type { Readable } from 'node:stream';

/** Where content is kept, by its hash: a directory, or S3-style storage. */
export interface ArtifactStore {
  /** How it is called in configurations, without credentials. */
  readonly name: string;
  /**
   * Takes in a file of this machine, whole or not at all; the file itself may go. What is there already is replaced.
   * Rejects with an ArtifactError.
   */
  put(key: string, path: string, options?: Progress): Promise<void>;
  /** Its bytes, and how many there are. Rejects with an ArtifactError, `missing` where there is none. */
  open(key: string): Promise<{ bytes: number; content: Readable }>;
  /** Whether there is any, be it damaged. Rejects with an ArtifactError where that cannot be known. */
  has(key: string): Promise<boolean>;
  /** Nothing happens where there is none. */
  remove(key: string): Promise<void>;
}

export interface Progress {
  /** Called now and then with how many bytes are done. */
  onBytes?: (bytes: number) => void;
  /** Ends it early: it rejects then, and nothing is half-kept. */
  signal?: AbortSignal | undefined;
}

/** What is wrong: there is no room, it is not there, not as it was, not what was asked for, or the store does not answer. */
export type ArtifactTrouble = 'full' | 'missing' | 'damaged' | 'wrong' | 'unreachable';

export class ArtifactError extends Error {
  readonly trouble: ArtifactTrouble;

  constructor(trouble: ArtifactTrouble, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ArtifactError';
    this.trouble = trouble;
  }
}

/** Makes of what a file system says an ArtifactError. */
export function fileTrouble(error: unknown, path: string): ArtifactError {
  if (error instanceof ArtifactError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const options = { cause: error };
  // EFBIG: what this process may write to one file.
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return new ArtifactError('full', `there is no room left for ${path}`, options);
  if (code === 'ENOENT') return new ArtifactError('missing', `${path} is not there`, options);
  return new ArtifactError('unreachable', `${path}: ${message}`, options);
}

/** Where content of a hash lies in a store: `sha256/ab/abcd...`. */
export function keyOf(sha256: string): string {
  return `sha256/${sha256.slice(0, 2)}/${sha256}`;
}
