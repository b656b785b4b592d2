/** What an engine told of how likely the tokens of its answer were. */
export interface TokenChances {
  /** Mean logarithm of the probability of a token, in nats: 0 is certain. */
  meanLogprob: number;
  /** Mean entropy of a token over the alternatives that were told and the rest, in nats; undefined where none were told. */
  entropy: number | undefined;
}

type Json = Record<string, unknown>;

/** Of the first choice of a chat or completion, where it carries log-probabilities. */
export function tokenChances(choice: Json): TokenChances | undefined {
  const logprobs = choice['logprobs'] as Json | null | undefined;
  if (typeof logprobs !== 'object' || logprobs === null) return undefined;
  const { content, token_logprobs: flat, top_logprobs: tops } = logprobs;
  if (Array.isArray(content)) {
    return means(
      content.map((token) => (token as Json | null)?.['logprob']),
      content.map((token) => alternatives((token as Json | null)?.['top_logprobs'])),
    );
  }
  if (!Array.isArray(flat)) return undefined;
  return means(flat, Array.isArray(tops) ? tops.map(alternatives) : []);
}

/** Chats tell a list of `{ logprob }`, completions an object of tokens. */
function alternatives(told: unknown): number[] | undefined {
  if (typeof told !== 'object' || told === null) return undefined;
  const all = Array.isArray(told)
    ? told.map((each) => (each as Json | null)?.['logprob'])
    : Object.values(told);
  const known = all.filter(isLogprob);
  return known.length > 0 ? known : undefined;
}

function means(
  logprobs: readonly unknown[],
  tops: readonly (number[] | undefined)[],
): TokenChances | undefined {
  const known = logprobs.filter(isLogprob);
  if (known.length === 0) return undefined;
  const told = tops.flatMap((each) => (each ? [entropyOf(each)] : []));
  return { meanLogprob: mean(known), entropy: told.length > 0 ? mean(told) : undefined };
}

/** What is missing to 1 counts as one more outcome. */
function entropyOf(logprobs: readonly number[]): number {
  const chances = logprobs.map(Math.exp);
  const rest = Math.max(0, 1 - chances.reduce((sum, each) => sum + each, 0));
  return entropy([...chances, rest]);
}

/** Of probabilities, in nats. */
export function entropy(chances: readonly number[]): number {
  return chances.reduce((sum, each) => (each > 0 ? sum - each * Math.log(each) : sum), 0);
}

const isLogprob = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value <= 0.001;

const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
