import { isUtf8 } from 'node:buffer';
import { scanMembers } from '../protocols/json-members.ts';
import { isObject, type Json } from '../protocols/json-object.ts';
import { Refused } from './refused.ts';

/** The members of a body, none of them twice: two readers could take different ones. Throws Refused. */
export function readObject(bytes: Buffer): Json {
  const unread = (why: string) => new Refused(`We could not parse the body of your request: ${why}.`);
  if (!isUtf8(bytes)) throw unread('it is not UTF-8');
  if (isTooDeep(bytes)) throw unread(`it is nested more than ${DEPTH_MAX} times`);
  const scanned = scanMembers(bytes, 0, bytes.length);
  if (typeof scanned === 'string') throw unread(scanned);
  const seen = new Set<string>();
  for (const { key } of scanned.members) {
    if (seen.has(key)) throw new Refused(`The member '${key}' is given twice.`, key);
    seen.add(key);
  }
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw unread((error as Error).message);
  }
  if (!isObject(body)) throw unread('it is no object');
  return body;
}

/** What is nested further could not be written again. */
const DEPTH_MAX = 256;

function isTooDeep(bytes: Buffer): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (isText) {
      if (byte === 0x5c) at++;
      else if (byte === 0x22) isText = false;
    } else if (byte === 0x22) isText = true;
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > DEPTH_MAX) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return false;
}
