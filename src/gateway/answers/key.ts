import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { type CanonicalMember, canonicalMembers, canonicalObject } from '../../protocols/canonical-json.ts';
import type { Call } from '../call.ts';
import type { Caller } from '../contracts.ts';

/** Members that do not change what is answered: how it is framed, and who asks. All others count. */
export const NOT_IN_KEY: readonly string[] = ['stream', 'stream_options', 'user', 'metadata'];

/** Longer bodies have no key: reading one of many megabytes for it would keep the worker from everybody else. */
const BODY_BYTES_MAX = 1024 * 1024;

export interface RequestKey {
  /** The same for the same question of the same tenant, and only then. */
  hash: string;
  /** How the answer is wanted: as a stream or not, coded or not. */
  framing: string;
  /** Whether it is meant to be answered alike each time: temperature 0, embeddings, tensors. */
  repeats: boolean;
}

/**
 * What a request is known by when its answer is kept or shared: SHA-256 over the tenant, the route, the kind of call and
 * the tier that is asked for, every member of the request save those above, in canonical form. Undefined for what cannot be told apart for certain:
 * no sound JSON, a sequence, a question about a model.
 */
export function requestKey(tenant: string, call: Call, caller: Caller): RequestKey | undefined {
  const { body } = caller;
  if (body.length > BODY_BYTES_MAX) return undefined;
  const openai = call.protocol === 'openai';
  if (!openai && (call.kind !== 'infer' || call.request?.sequence)) return undefined;
  const jsonEnd = openai || call.headerLength === undefined ? body.length : Number(call.headerLength);
  const json = body.subarray(0, jsonEnd);
  const members = isUtf8(json) ? canonicalMembers(json.toString('utf8')) : undefined;
  if (!members) return undefined;
  const asked = openai ? members.filter(({ key }) => !NOT_IN_KEY.includes(key)) : members;
  const version = openai ? null : (call.version ?? null);
  const told = [caller.header('openai-beta') ?? null, caller.header('x-armature-tier') ?? null];
  const names = [tenant, call.route, call.protocol, call.kind, version, ...told];
  // Neither text has a line break in it.
  const text = `${JSON.stringify(names)}\n${canonicalObject(asked)}\n`;
  const data = jsonEnd < body.length ? Buffer.concat([Buffer.from(text), body.subarray(jsonEnd)]) : text;
  const framing = openai
    ? canonicalObject(members.filter(({ key }) => key === 'stream' || key === 'stream_options'))
    : (caller.header('accept-encoding') ?? '');
  const repeats = !openai || call.kind === 'embeddings' || hasTemperatureZero(members);
  return { hash: hash('sha256', data, 'base64url'), framing, repeats };
}

function hasTemperatureZero(members: readonly CanonicalMember[]): boolean {
  const given = members.filter(({ key }) => key === 'temperature');
  return given.length === 1 && /^-?[\d.eE+-]+$/.test(given[0]!.value) && Number(given[0]!.value) === 0;
}
