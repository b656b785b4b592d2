import OpenAI, { type ClientOptions } from 'openai';
import type { Armature } from '../upstream/armature.ts';

/** OpenAI's own package, unchanged, at this Armature. It makes no attempts of its own unless it is told so. */
export function openaiOf(
  { gatewayPort }: Pick<Armature, 'gatewayPort'>,
  options: ClientOptions = {},
): OpenAI {
  return new OpenAI({
    apiKey: 'none',
    baseURL: `http://127.0.0.1:${gatewayPort}/v1`,
    maxRetries: 0,
    ...options,
  });
}

/** What a promise rejects with; fails when it does not. */
export async function thrown(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('expected a rejection');
    },
    (error: unknown) => error,
  );
}
