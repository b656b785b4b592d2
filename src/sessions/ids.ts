import { randomBytes } from 'node:crypto';

/** 192 bits that nobody can guess: whoever has no key of the tenant learns nothing from trying. */
const ID_BYTES = 24;

/** As OpenAI's: resp_ a response, conv_ a conversation, msg_ a message, fc_ a call, fco_ its output, rs_ reasoning. */
export type IdPrefix = 'resp' | 'conv' | 'msg' | 'fc' | 'fco' | 'rs' | 'call';

export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBytes(ID_BYTES).toString('hex')}`;
}

/** What can be the id of something that is kept here. */
export function isId(text: string): boolean {
  return /^[a-z]+_[0-9a-f]{48}$/.test(text);
}
