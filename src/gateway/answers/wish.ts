/** What a caller says of kept answers, in its `cache-control` header (RFC 9111, 5.2.1). */
export interface CacheWish {
  /** It takes a kept answer, no older than `ageMsMax`. */
  lookUp: boolean;
  ageMsMax: number;
  /** Its answer may be kept. */
  keep: boolean;
}

const ANY: CacheWish = { lookUp: true, ageMsMax: Number.POSITIVE_INFINITY, keep: true };

export function cacheWish(header: string | undefined): CacheWish {
  if (header === undefined) return ANY;
  const words = header.toLowerCase().split(/[\s,]+/);
  const noStore = words.includes('no-store');
  const age = words
    .map((word) => /^max-age="?(\d{1,15})"?$/.exec(word)?.[1])
    .find((each) => each !== undefined);
  return {
    lookUp: !noStore && !words.includes('no-cache'),
    ageMsMax: age === undefined ? Number.POSITIVE_INFINITY : Number(age) * 1000,
    keep: !noStore,
  };
}
