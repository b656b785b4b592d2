/** Finds what was probably meant. */

/** The candidate most like the word, unless none is like it. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  const folded = word.toLowerCase();
  for (const candidate of candidates) {
    // Four of ten letters may differ; of short words one, so that `id` is not taken for `by`.
    const most = Math.max(1, Math.floor(Math.max(word.length, candidate.length) * 0.4));
    if (Math.abs(word.length - candidate.length) > most) continue;
    const distance = editDistance(folded, candidate.toLowerCase());
    if (distance <= most && distance < bestDistance && distance < candidate.length) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Letters to add, remove or change, or neighbours to swap, to make one word the other (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(change, above[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, before[j - 2]! + 1);
      row.push(least);
    }
    before = above;
    above = row;
  }
  return above[b.length]!;
}

const DURATION =
  /^\s*(\d+(?:\.\d+)?)\s*(milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\s*$/i;
const SIZE = /^\s*(\d+(?:\.\d+)?)\s*(k|m|g|t)?(i)?(b|bytes?)?\s*$/i;
const RATE = /^\s*(\d+(?:\.\d+)?)\s*(?:\/|per)\s*(s|m|h|d)[a-z]*\s*$/i;

/** How a value with a unit is written rightly, where it can be told what was meant. `kind` is the title of its schema. */
export function nearestUnit(kind: string | undefined, found: unknown): string | undefined {
  if (typeof found !== 'number' && typeof found !== 'string') return undefined;
  const text = String(found);
  if (kind === 'duration') {
    if (/^\d+(\.\d+)?$/.test(text)) return `${text}ms or ${text}s`;
    const match = DURATION.exec(text);
    const unit = match?.[2]?.toLowerCase() ?? '';
    return match ? match[1]! + (/^(ms|milli|msec)/.test(unit) ? 'ms' : unit[0]) : undefined;
  }
  if (kind === 'size') {
    const match = SIZE.exec(text);
    return match ? `${match[1]}${match[2] ? `${match[2].toUpperCase()}iB` : 'B'}` : undefined;
  }
  if (kind === 'rate') {
    if (/^\d+(\.\d+)?$/.test(text)) return `${text}/s or ${text}/min`;
    const match = RATE.exec(text);
    const unit = match?.[2]?.toLowerCase();
    return match ? `${match[1]}/${unit === 'm' ? 'min' : unit}` : undefined;
  }
  return undefined;
}
