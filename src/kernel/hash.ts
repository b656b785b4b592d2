/**
 * A fast hash of text to 32 bits, equal on every machine and worker; not for secrets.
 * Formula: FNV-1a over UTF-16 code units, then the finaliser of MurmurHash3 (both public domain).
 */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mix32(hash);
}

/** Spreads 32 bits so that each depends on all of them; no two inputs give the same. Formula: MurmurHash3's finaliser. */
export function mix32(bits: number): number {
  let hash = bits ^ (bits >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * How strongly `key` belongs to `name` of this weight: the name with the highest score wins, and when a name comes or
 * goes only its own keys move. Formula: weighted rendezvous hashing by logarithms (Schindelhauer and Schomaker, 2005).
 */
export function rendezvousScore(key: string, name: string, weight: number): number {
  const uniform = (hash32(`${key}\u0000${name}`) + 0.5) / 2 ** 32;
  return -weight / Math.log(uniform);
}
