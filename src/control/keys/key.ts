import { createHash, randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BYTES = 32;
/** Digits of base 62 that hold 256 bits. */
const DIGITS = 43;

/** A new key: `ak_` and 32 random bytes in base 62, always 46 characters long. */
export function newKey(): string {
  return `ak_${base62(randomBytes(BYTES))}`;
}

function base62(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  for (let i = 0; i < DIGITS; i++) {
    text = ALPHABET[Number(value % 62n)]! + text;
    value /= 62n;
  }
  return text;
}

/** What is kept of a key: `sha256:` and 64 hexadecimal digits. A key has 256 random bits, so that one round is enough. */
export function hashOf(key: string): string {
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}
