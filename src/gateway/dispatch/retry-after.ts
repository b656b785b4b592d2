import type { UpstreamHeaders } from '../contracts.ts';

const IMF_DATE = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}:\d{2}:\d{2}) GMT$/;
const RFC_850_DATE = /^[A-Z][a-z]+, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}:\d{2}:\d{2}) GMT$/;
const ASCTIME_DATE = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}:\d{2}:\d{2}) (\d{4})$/;
const ISO_DATE = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/;
const NUMBER = /^\d+(?:\.\d+)?$/;
const HALF_CENTURY_MS = 50 * 365.25 * 86_400_000;

/**
 * How long an engine asks to be left alone, milliseconds: by `retry-after-ms` (OpenAI, Azure), or by `retry-after`, in seconds
 * with or without a fraction, or as a date in any of HTTP's three forms (RFC 9110, 5.6.7). A date is read by the engine's own
 * clock where its answer tells what that says. Of several values the longest counts; undefined where none can be read.
 */
export function retryAfterMs(headers: UpstreamHeaders, wallMs: number): number | undefined {
  const ms = longest(headers['retry-after-ms'], (text) => (NUMBER.test(text) ? Number(text) : undefined));
  if (ms !== undefined) return ms;
  const said = headers['date'];
  const now = (typeof said === 'string' ? readDate(said, wallMs) : undefined) ?? wallMs;
  return longest(headers['retry-after'], (text) => {
    if (NUMBER.test(text)) return Number(text) * 1000;
    const date = readDate(text, now);
    return date === undefined ? undefined : Math.max(0, date - now);
  });
}

function longest(
  header: string | string[] | undefined,
  read: (text: string) => number | undefined,
): number | undefined {
  if (header === undefined) return undefined;
  const values = [header].flat().flatMap((text) => read(text.trim()) ?? []);
  return values.length === 0 ? undefined : Math.max(...values);
}

/** Milliseconds since 1970; undefined for what is no date. */
function readDate(text: string, now: number): number | undefined {
  let written: string | undefined;
  let match = IMF_DATE.exec(text);
  if (match) written = `${match[1]} ${match[2]} ${match[3]} ${match[4]} GMT`;
  match = ASCTIME_DATE.exec(text);
  if (match) written = `${match[2]!.trim()} ${match[1]} ${match[4]} ${match[3]} GMT`;
  if (ISO_DATE.test(text)) written = text;
  match = RFC_850_DATE.exec(text);
  if (match) {
    const of = (century: number) =>
      Date.parse(`${match![1]} ${match![2]} ${century}${match![3]} ${match![4]} GMT`);
    const date = of(20);
    return valid(date - now > HALF_CENTURY_MS ? of(19) : date);
  }
  return written === undefined ? undefined : valid(Date.parse(written));
}

function valid(date: number): number | undefined {
  return Number.isNaN(date) ? undefined : date;
}
