import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { type Random, seededRandom } from '../kernel/random.ts';
import type { TraceRow } from './trace.ts';

/**
 * ServeGen's tables are no requests, but how requests came: for each client and window of ten minutes the distribution of the
 * gaps between them, and in files beside it (`MODEL_clientN_tokens.json.gz`) that of their tokens. Requests are drawn from
 * them; clients without a file of tokens draw from those of all others.
 */
export interface ServegenWindow {
  client: number;
  fromMs: number;
  pattern: 'Gamma' | 'Weibull';
  shape: number;
  /** Of the gaps, milliseconds. */
  scaleMs: number;
}

const HEAD = 'client,t_s,rate,iat_cv,pattern,arg1,arg2';
const WINDOW_MS = 600_000;
/** Requests that are drawn at most. */
const ROWS_MAX = 5_000_000;

/** Draws the requests that come between two moments. A message where the tables cannot be read; undefined for another file. */
export function drawServegen(
  file: string,
  fromMs: number,
  forMs: number,
  seed: number,
): TraceRow[] | string | undefined {
  if (!/_windows\.csv(\.gz)?$/.test(file) || !existsSync(file)) return undefined;
  const windows = readWindows(textOf(file));
  if (typeof windows === 'string') return `${file}: ${windows}`;
  const tokens = new TokenTables(file.replace(/_windows\.csv(\.gz)?$/, ''), [
    ...new Set(windows.map(({ client }) => client)),
  ]);
  if (tokens.empty)
    return `${file}: there is no MODEL_clientN_tokens.json beside it, which says how long requests are`;
  const parent = seededRandom(seed);
  const rows: TraceRow[] = [];
  for (const window of windows) {
    // Drawn for each window, so that looking at a part of the time does not change what comes in it.
    const random = seededRandom(parent.next() * 2 ** 32);
    if (window.fromMs + WINDOW_MS <= fromMs || window.fromMs >= fromMs + forMs) continue;
    for (
      let at = window.fromMs + gap(window, random);
      at < window.fromMs + WINDOW_MS;
      at += gap(window, random)
    ) {
      const { promptTokens, outputTokens } = tokens.draw(window.client, at, random);
      if (at < fromMs || at >= fromMs + forMs) continue;
      rows.push({ atMs: at - fromMs, promptTokens, outputTokens, client: `client-${window.client}` });
      if (rows.length > ROWS_MAX)
        return `${file}: more than ${ROWS_MAX} requests come in that time: ask for less with --for`;
    }
  }
  return rows.length === 0 ? `${file}: nothing comes in that time` : rows.sort((a, b) => a.atMs - b.atMs);
}

function textOf(file: string): string {
  const bytes = readFileSync(file);
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString('utf8');
}

/** The same for the text of a table of windows. */
export function readWindows(text: string): ServegenWindow[] | string {
  const [head, ...lines] = text.split(/\r?\n/);
  if (head !== HEAD) return `the first line must be ${HEAD}`;
  const windows: ServegenWindow[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === '') continue;
    const cells = line.split(',');
    const pattern = cells[4];
    const [client, fromS, shape, scaleS] = [0, 1, 5, 6].map((at) => Number(cells[at])) as [
      number,
      number,
      number,
      number,
    ];
    const sound = client >= 0 && fromS >= 0 && shape > 0 && scaleS > 0;
    if (!sound || (pattern !== 'Gamma' && pattern !== 'Weibull'))
      return `line ${index + 2} is no window: ${line.slice(0, 80)}`;
    windows.push({ client, fromMs: fromS * 1000, pattern, shape, scaleMs: scaleS * 1000 });
  }
  return windows.length === 0 ? 'it has no windows' : windows;
}

/** A gap between two requests; one of no length would never end. */
function gap({ pattern, shape, scaleMs }: ServegenWindow, random: Random): number {
  const unit = pattern === 'Gamma' ? gamma(shape, random) : (-Math.log(1 - random.next())) ** (1 / shape);
  return Math.max(1e-3, unit * scaleMs);
}

/** Of scale 1. Formula: Marsaglia and Tsang, 2000; for shapes below 1 that of shape + 1, times u^(1/shape). */
function gamma(shape: number, random: Random): number {
  if (shape < 1) return gamma(shape + 1, random) * (1 - random.next()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
    const v = (1 + c * normal) ** 3;
    if (v <= 0) continue;
    if (Math.log(1 - random.next()) < 0.5 * normal * normal + d - d * v + d * Math.log(v)) return d * v;
  }
}

/** Values and, for each, the probability of it and of all before it. */
interface Distribution {
  values: number[];
  upTo: number[];
}

class TokenTables {
  readonly #byClient = new Map<number, { fromMs: number; prompt: Distribution; output: Distribution }[]>();
  readonly #all: number[];

  constructor(prefix: string, clients: readonly number[]) {
    for (const client of clients) {
      const file = [`${prefix}_client${client}_tokens.json.gz`, `${prefix}_client${client}_tokens.json`].find(
        existsSync,
      );
      if (file === undefined) continue;
      const windows = readTokens(textOf(file));
      if (windows.length > 0) this.#byClient.set(client, windows);
    }
    this.#all = [...this.#byClient.keys()].sort((a, b) => a - b);
  }

  get empty(): boolean {
    return this.#all.length === 0;
  }

  draw(client: number, atMs: number, random: Random): { promptTokens: number; outputTokens: number } {
    const other = this.#all[Math.floor(random.next() * this.#all.length)]!;
    const windows = this.#byClient.get(client) ?? this.#byClient.get(other)!;
    const window = windows.findLast(({ fromMs }) => fromMs <= atMs) ?? windows[0]!;
    return { promptTokens: drawFrom(window.prompt, random), outputTokens: drawFrom(window.output, random) };
  }
}

/** Windows that say something, by their starts: `{"0": {"input_tokens": "{5: 0.2, 7: 0.8}", "output_tokens": ...}}`. */
function readTokens(text: string) {
  const told = JSON.parse(text) as Record<string, { input_tokens: string; output_tokens: string }>;
  return Object.entries(told)
    .flatMap(([seconds, { input_tokens, output_tokens }]) => {
      const [prompt, output] = [distributionOf(input_tokens), distributionOf(output_tokens)];
      return prompt && output ? [{ fromMs: Number(seconds) * 1000, prompt, output }] : [];
    })
    .sort((a, b) => a.fromMs - b.fromMs);
}

function distributionOf(text: string): Distribution | undefined {
  const values: number[] = [];
  const upTo: number[] = [];
  let sum = 0;
  for (const [, value, share] of text.matchAll(/(\d+)(?:\.0)?: ([\d.e-]+)/g)) {
    sum += Number(share);
    values.push(Math.max(1, Number(value)));
    upTo.push(sum);
  }
  return sum > 0 ? { values, upTo: upTo.map((each) => each / sum) } : undefined;
}

function drawFrom({ values, upTo }: Distribution, random: Random): number {
  const drawn = random.next();
  let low = 0;
  let high = upTo.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (upTo[middle]! > drawn) high = middle;
    else low = middle + 1;
  }
  return values[low]!;
}
