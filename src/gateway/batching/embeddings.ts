import { isUtf8 } from 'node:buffer';
import { canonicalMembers, canonicalObject } from '../../protocols/canonical-json.ts';
import { type Member, scanMembers } from '../../protocols/json-members.ts';
import { embeddingsUsage } from '../../protocols/openai/embeddings.ts';
import type { Joiner, Part, Share } from './contracts.ts';
import { readRows, renumbered } from './embedding-rows.ts';
import { hasTwice, replaced, withMembers } from './pieces.ts';

/** Beyond this a request goes by itself: what is said beside the input is short. */
const REST_CHARACTERS_MAX = 4096;

interface EmbeddingsPart extends Part {
  /** Each input, as JSON. */
  inputs: readonly string[];
  /** What each weighs among the others: its tokens where it came as tokens, else its bytes. */
  weight: number;
  /** All members but `input`, as an object. */
  rest: string;
}

/** What of an embeddings request can be joined with others; undefined where it has to go by itself. */
export function embeddingsPart(body: Buffer): Part | undefined {
  const members = isUtf8(body) ? canonicalMembers(body.toString('utf8')) : undefined;
  if (!members || hasTwice(members)) return undefined;
  const input = members.find(({ key }) => key === 'input');
  const read = input && readInputs(JSON.parse(input.value));
  if (!read) return undefined;
  const rest = canonicalObject(members.filter((member) => member !== input));
  if (rest.length > REST_CHARACTERS_MAX) return undefined;
  const { inputs, weight, kind } = read;
  const part: EmbeddingsPart = {
    key: `${kind}\n${rest}`,
    count: inputs.length,
    joiner,
    inputs,
    weight,
    rest,
  };
  return part;
}

function readInputs(value: unknown): { inputs: string[]; weight: number; kind: string } | undefined {
  const list = Array.isArray(value) ? (value as unknown[]) : [value];
  if (list.length === 0) return undefined;
  if (list.every((item) => typeof item === 'string')) {
    const inputs = list.map((item) => JSON.stringify(item));
    return { inputs, weight: inputs.reduce((sum, text) => sum + text.length, 0), kind: 'texts' };
  }
  if (!Array.isArray(value)) return undefined;
  const lists = list.every((item) => Array.isArray(item)) ? (list as unknown[][]) : [list];
  if (!lists.every((tokens) => tokens.length > 0 && tokens.every(Number.isSafeInteger))) return undefined;
  const weight = lists.reduce((sum, tokens) => sum + tokens.length, 0);
  return { inputs: lists.map((tokens) => JSON.stringify(tokens)), weight, kind: 'tokens' };
}

const joiner: Joiner = {
  join(parts) {
    const all = parts as readonly EmbeddingsPart[];
    const inputs = all.flatMap((part) => part.inputs).join(',');
    return { body: Buffer.from(withMembers(all[0]!.rest, `"input":[${inputs}]`)), jsonBytes: undefined };
  },

  split({ body: answer }, parts, ids) {
    const all = parts as readonly EmbeddingsPart[];
    const scanned = scanMembers(answer);
    if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
    const find = (key: string) => scanned.members.find((member) => member.key === key);
    const data = find('data');
    const total = parts.reduce((sum, { count }) => sum + count, 0);
    const rows = data && readRows(answer, data, total);
    if (!rows) return undefined;
    const usage = find('usage');
    const tokens = usage && readTokens(answer, usage);
    const weights = all.map(({ weight }) => weight);
    const shares = tokens === undefined ? undefined : spread(tokens, weights);
    let from = 0;
    return all.map(({ count }, at): Share => {
      const own = rows.slice(from, from + count).map((row, index) => renumbered(answer, row, index));
      from += count;
      const tokensIn = shares?.[at];
      const edits = new Map<Member, string>([[data, `[${own.join(',')}]`]]);
      const id = find('id');
      if (id) edits.set(id, JSON.stringify(`embd-${ids[at]}`));
      if (usage && tokensIn !== undefined) {
        edits.set(usage, JSON.stringify(embeddingsUsage(tokensIn)));
      }
      return { body: replaced(answer, edits), jsonBytes: undefined, tokensIn };
    });
  },
};

function readTokens(answer: Buffer, { start, end }: Member): number | undefined {
  let usage: { prompt_tokens?: unknown } | null;
  try {
    usage = JSON.parse(answer.toString('utf8', start, end));
  } catch {
    return undefined; // it is passed on as it is, and tells nothing
  }
  const tokens = usage?.prompt_tokens;
  return Number.isSafeInteger(tokens) && (tokens as number) >= 0 ? (tokens as number) : undefined;
}

/** Spreads a whole number by weight, the shares whole and their sum exact: the largest remainders get what is left. */
export function spread(total: number, weights: readonly number[]): number[] {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const exact = weights.map((weight) => (total * weight) / sum);
  const shares = exact.map(Math.floor);
  let left = total - shares.reduce((all, share) => all + share, 0);
  const order = [...exact.keys()].sort((a, b) => exact[b]! - shares[b]! - (exact[a]! - shares[a]!) || a - b);
  for (const at of order) {
    if (left <= 0) break;
    shares[at]!++;
    left--;
  }
  return shares;
}
