import { createHash, timingSafeEqual } from 'node:crypto';

/** Which tenant a key belongs to. Keys are known by their SHA-256 alone. */
export class KeyRing {
  /** By the first bytes of the hash, so that few are compared; the comparison itself takes the same time for all. */
  readonly #byPrefix = new Map<string, { hash: Buffer; tenant: string }[]>();

  constructor(keys: readonly { tenant: string; hash: string }[]) {
    for (const { tenant, hash } of keys) {
      const bytes = Buffer.from(hash.replace(/^sha256:/, ''), 'hex');
      const prefix = bytes.toString('hex', 0, 4);
      const same = this.#byPrefix.get(prefix);
      if (same) same.push({ hash: bytes, tenant });
      else this.#byPrefix.set(prefix, [{ hash: bytes, tenant }]);
    }
  }

  tenantOf(key: string): string | undefined {
    const hash = createHash('sha256').update(key).digest();
    const found = this.#byPrefix
      .get(hash.toString('hex', 0, 4))
      ?.find((each) => timingSafeEqual(each.hash, hash));
    return found?.tenant;
  }
}
