import { type Priority, priorities } from '../kernel/priorities.ts';
import { type Random, seededRandom } from '../kernel/random.ts';
import { parseDuration, parseRate } from '../kernel/units.ts';
import type { Arrival } from '../simulation/contracts.ts';
import { type Distribution, parseDistribution } from './distribution.ts';
import type { TraceRow } from './trace.ts';

/** One part of a simulated load, as `--load` says it. */
export interface TrafficPart {
  perSecond: number;
  fromMs: number;
  forMs: number;
  prompt: Distribution;
  output: Distribution;
  arrivals: { kind: 'poisson' | 'constant' } | { kind: 'bursts'; sizeMean: number };
  /** Share of streams, 0 to 1. */
  stream: number;
  embeddings: boolean;
  /** What callers ask for as `max_tokens`: as much as comes, nothing, or a number. */
  max: 'asked' | 'none' | number;
  route: string | undefined;
  tenant: string | undefined;
  priority: Priority | undefined;
  deadlineMs: number | undefined;
  /** Conversations that the requests belong to; undefined for none. */
  sessions: number | undefined;
  /** Different prompts that are asked for, each again and again; undefined: no two are alike. */
  prompts: number | undefined;
  /** Callers leave after so long. */
  leaveMs: number | undefined;
}

const FOR_MS = 60_000;

type Reader = (text: string) => Partial<TrafficPart> | undefined;

const share = (text: string): number | undefined => {
  const value = /^\d+(\.\d+)?%$/.test(text) ? Number(text.slice(0, -1)) / 100 : Number(text);
  return text !== '' && value >= 0 && value <= 1 ? value : undefined;
};
const some = <Key extends keyof TrafficPart>(key: Key, value: TrafficPart[Key] | undefined) =>
  value === undefined ? undefined : ({ [key]: value } as Partial<TrafficPart>);
const whole = (text: string) => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined);
const lengths = (text: string) => {
  const read = parseDistribution(text);
  return typeof read === 'string' ? undefined : read;
};
const named = (text: string) => (text === '' ? undefined : text);

/** Each member of a `--load`, how it is read, and what is expected of it. */
const MEMBERS: Record<string, { read: Reader; expected: string }> = {
  rate: {
    read: (text) => {
      const rate = parseRate(/^\d+(\.\d+)?$/.test(text) ? `${text}/s` : text);
      return some('perSecond', rate && rate.amount > 0 ? rate.amount / rate.perSeconds : undefined);
    },
    expected: 'a rate such as 200/s',
  },
  at: { read: (text) => some('fromMs', parseDuration(text)), expected: 'when it begins, such as 10s' },
  for: { read: (text) => some('forMs', parseDuration(text) || undefined), expected: 'how long, such as 60s' },
  in: { read: (text) => some('prompt', lengths(text)), expected: 'tokens: N, A-B or lognormal:MEAN/P95' },
  out: { read: (text) => some('output', lengths(text)), expected: 'tokens: N, A-B or lognormal:MEAN/P95' },
  arrivals: {
    read: (text) => {
      const burst = /^bursts:(\d+(?:\.\d+)?)$/.exec(text);
      if (burst && Number(burst[1]) >= 1) return { arrivals: { kind: 'bursts', sizeMean: Number(burst[1]) } };
      return text === 'poisson' || text === 'constant' ? { arrivals: { kind: text } } : undefined;
    },
    expected: 'poisson, constant or bursts:SIZE, the mean size',
  },
  stream: { read: (text) => some('stream', share(text)), expected: 'a share of 0 to 1' },
  kind: {
    read: (text) =>
      text === 'chat' || text === 'embeddings' ? { embeddings: text === 'embeddings' } : undefined,
    expected: 'chat or embeddings',
  },
  max: {
    read: (text) => some('max', text === 'asked' || text === 'none' ? text : whole(text)),
    expected: 'asked (the length that comes), none or a number of tokens',
  },
  route: { read: (text) => some('route', named(text)), expected: 'the name of a route' },
  tenant: { read: (text) => some('tenant', named(text)), expected: 'the name of a tenant' },
  priority: {
    read: (text) =>
      some(
        'priority',
        priorities.find((each) => each === text),
      ),
    expected: `one of ${priorities.join(', ')}`,
  },
  deadline: {
    read: (text) => some('deadlineMs', parseDuration(text) || undefined),
    expected: 'a duration such as 2s',
  },
  sessions: { read: (text) => some('sessions', whole(text)), expected: 'a number of conversations' },
  prompts: { read: (text) => some('prompts', whole(text)), expected: 'a number of different prompts' },
  leave: {
    read: (text) => some('leaveMs', parseDuration(text) || undefined),
    expected: 'a duration such as 5s',
  },
};

/**
 * Reads `rate=200/s,for=60s,in=512,out=128,...`, a part of a load. The result is a message where it cannot be read.
 */
export function parseTraffic(text: string): TrafficPart | string {
  const fixed = (tokens: string) => parseDistribution(tokens) as Distribution;
  const part: TrafficPart = {
    perSecond: 0,
    fromMs: 0,
    forMs: FOR_MS,
    prompt: fixed('512'),
    output: fixed('128'),
    arrivals: { kind: 'poisson' },
    stream: 0,
    embeddings: false,
    max: 'asked',
    route: undefined,
    tenant: undefined,
    priority: undefined,
    deadlineMs: undefined,
    sessions: undefined,
    prompts: undefined,
    leaveMs: undefined,
  };
  const given = new Set<string>();
  for (const member of text.split(',')) {
    const at = member.indexOf('=');
    const name = member.slice(0, Math.max(0, at)).trim();
    const reader = Object.hasOwn(MEMBERS, name) ? MEMBERS[name] : undefined;
    if (!reader) {
      const shown = at < 0 ? member.trim() : name;
      return `'${shown}' is none of ${Object.keys(MEMBERS).join(', ')}`;
    }
    if (given.has(name)) return `${name} is given twice`;
    given.add(name);
    const value = reader.read(member.slice(at + 1).trim());
    if (!value) return `${name}: expected ${reader.expected}, got '${member.slice(at + 1).trim()}'`;
    Object.assign(part, value);
  }
  if (part.perSecond === 0) return 'it needs a rate, such as rate=50/s';
  return part;
}

/** Arrivals of one part, in order of time. `route` is asked for where the part names none. */
export function* trafficOf(part: TrafficPart, route: string, seed: number): Generator<Arrival> {
  // Each use of chance has a generator of its own, so that one does not move the others.
  const parent = seededRandom(seed);
  const child = () => seededRandom(parent.next() * 2 ** 32);
  const lengths = child();
  const others = child();
  const untilMs = part.fromMs + part.forMs;
  const draw = () => ({ promptTokens: part.prompt.draw(lengths), outputTokens: part.output.draw(lengths) });
  // The same prompt has the same length, and the same answer.
  const known = Array.from({ length: part.prompts ?? 0 }, draw);
  for (const atMs of timesOf(part, child())) {
    if (atMs >= untilMs) return;
    const subject = part.prompts === undefined ? undefined : Math.floor(others.next() * part.prompts);
    const { promptTokens, outputTokens } = subject === undefined ? draw() : known[subject]!;
    const max = part.max === 'asked' ? outputTokens : part.max === 'none' ? undefined : part.max;
    const stream = others.next() < part.stream && !part.embeddings;
    yield {
      atMs,
      route: part.route ?? route,
      kind: part.embeddings ? 'embeddings' : 'chat',
      promptTokens,
      outputTokens,
      stream,
      outputTokensMax: max,
      tenant: part.tenant,
      priority: part.priority,
      deadlineMs: part.deadlineMs,
      session: part.sessions === undefined ? undefined : `s${Math.floor(others.next() * part.sessions)}`,
      leavesAfterMs: part.leaveMs,
      ...(subject !== undefined && { subject }),
    };
  }
}

/**
 * Moments at which requests come. Formula of bursts: bursts are Poisson at rate/SIZE a second, their sizes geometric with
 * the mean SIZE (a compound Poisson process); those of one burst come at one moment.
 */
function* timesOf({ perSecond, fromMs, arrivals }: TrafficPart, random: Random): Generator<number> {
  const gap = (rate: number) => (-Math.log(1 - random.next()) / rate) * 1000;
  let atMs = fromMs;
  if (arrivals.kind === 'constant') for (let i = 0; ; i++) yield fromMs + (i * 1000) / perSecond;
  if (arrivals.kind === 'poisson') for (;;) yield (atMs += gap(perSecond));
  const { sizeMean } = arrivals as { sizeMean: number };
  for (;;) {
    atMs += gap(perSecond / sizeMean);
    const size =
      sizeMean === 1 ? 1 : 1 + Math.floor(Math.log(1 - random.next()) / Math.log(1 - 1 / sizeMean));
    for (let i = 0; i < size; i++) yield atMs;
  }
}

/** What the rows of a trace leave open. */
export interface TraceSettings {
  route: string;
  /** So many times as fast. */
  speed: number;
  /** Each row is moved evenly within so many milliseconds: for stamps that lie on a grid. */
  spreadMs: number;
  stream: number;
  seed: number;
}

/** Arrivals of a trace, in order of time; one pass. */
export function* trafficOfTrace(
  rows: readonly TraceRow[],
  { route, speed, spreadMs, stream, seed }: TraceSettings,
): Generator<Arrival> {
  const random = seededRandom(seed);
  const at = rows.map((row) => (row.atMs + random.next() * spreadMs) / speed);
  const order = rows.map((_, index) => index).sort((a, b) => at[a]! - at[b]!);
  for (const index of order) {
    const row = rows[index]!;
    const outputTokens = Math.max(1, row.outputTokens);
    yield {
      atMs: at[index]!,
      route: row.route ?? route,
      kind: 'chat',
      promptTokens: Math.max(1, row.promptTokens),
      outputTokens,
      stream: row.stream ?? random.next() < stream,
      outputTokensMax: outputTokens,
      tenant: row.tenant,
      priority: row.priority,
      deadlineMs: undefined,
      session: row.session,
      leavesAfterMs: undefined,
    };
  }
}

/** Several loads as one, in order of time. */
export function* merged(parts: readonly Iterator<Arrival>[]): Generator<Arrival> {
  const heads = parts.map((part) => part.next());
  for (;;) {
    let first = -1;
    for (const [index, head] of heads.entries()) {
      if (head.done) continue;
      const best = first < 0 ? undefined : heads[first]!;
      if (!best || best.done || head.value.atMs < best.value.atMs) first = index;
    }
    if (first < 0) return;
    yield heads[first]!.value as Arrival;
    heads[first] = parts[first]!.next();
  }
}
