import type { Failure } from '../../kernel/errors.ts';

/** The protocol's error object: one string. */
export function oipErrorBody(failure: Failure): string {
  return JSON.stringify({ error: failure.message });
}

/** What `GET /v2` says of this server. */
export function serverMetadata(version: string): string {
  return JSON.stringify({
    name: 'armature',
    version,
    extensions: ['binary_tensor_data', 'sequence', 'model_versions'],
  });
}
