import { seconds } from '../answers.ts';
import type { StoredFile } from './store/rows.ts';

/** What OpenAI's API has files uploaded for. Only those of batches are read by Armature; the others are kept as they are. */
export const PURPOSES = ['batch', 'assistants', 'fine-tune', 'vision', 'user_data', 'evals'] as const;

export function isPurpose(purpose: string): boolean {
  return (PURPOSES as readonly string[]).includes(purpose);
}

/** OpenAI's file object. */
export function fileObject({ id, bytes, createdMs, expiresMs, filename, purpose }: StoredFile) {
  return {
    id,
    object: 'file',
    bytes,
    created_at: seconds(createdMs),
    ...(expiresMs === undefined ? {} : { expires_at: seconds(expiresMs) }),
    filename,
    purpose,
    status: 'processed',
    status_details: null,
  };
}
