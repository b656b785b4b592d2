import type { GoldenPrompt } from './golden.ts';

/** What a backend answered to a golden prompt, as far as decisions and distances are read out of it. */
export interface GoldenAnswer {
  text?: string;
  /** Log-probabilities, natural; the likeliest alternatives first. Absent where the engine tells none. */
  tokens?: ToldToken[];
  vectors?: number[][];
  outputs?: { name: string; shape: number[]; data: number[] }[];
  /** The engine refused the request: its status, of 400 to 499. */
  refused?: number;
  /** `system_fingerprint` */
  fingerprint?: string;
}

export interface ToldToken {
  text: string;
  logprob: number;
  top: { text: string; logprob: number }[];
}

/** How many alternatives of each token are asked for. */
const TOP_LOGPROBS = 5;
/** The longest answer where the prompt does not say, in tokens. */
const TOKENS_MAX = 64;

/** Members that a golden request has no say in. */
const OURS = ['model', 'stream', 'stream_options', 'n'];

export interface CallTerms {
  /** The name that the engine knows the model by. */
  model: string;
  /** Whether log-probabilities are asked for; there are engines that refuse them. */
  logprobs: boolean;
  /** How a chat is told its longest answer. */
  cap: 'max_tokens' | 'max_completion_tokens';
}

/**
 * The path, under an OpenAI or OIP address, and the body of a golden prompt for a model. Greedy unless the prompt says otherwise.
 */
export function callOf(
  { kind, request }: GoldenPrompt,
  { model, logprobs, cap }: CallTerms,
): { path: string; body: Record<string, unknown> } {
  const own = Object.fromEntries(Object.entries(request).filter(([name]) => !OURS.includes(name)));
  if (kind === 'tensors') return { path: `/v2/models/${encodeURIComponent(model)}/infer`, body: own };
  if (kind === 'embedding') return { path: '/embeddings', body: { ...own, model, encoding_format: 'float' } };
  const capped = 'max_tokens' in own || 'max_completion_tokens' in own;
  const capName = kind === 'chat' ? cap : 'max_tokens';
  const common = { temperature: 0, ...own, ...(!capped && { [capName]: TOKENS_MAX }), model };
  if (kind === 'chat') {
    const asked = logprobs ? { logprobs: true, top_logprobs: TOP_LOGPROBS } : {};
    return { path: '/chat/completions', body: { ...common, ...asked } };
  }
  return { path: '/completions', body: { ...common, ...(logprobs && { logprobs: TOP_LOGPROBS }) } };
}

interface Body {
  system_fingerprint?: unknown;
  choices: { message: Message; text: unknown; logprobs?: ChatLogprobs & CompletionLogprobs }[];
  data: { index: number; embedding: unknown }[];
  outputs: { name: string; shape: unknown; data: unknown[] }[];
}

/** Throws where the body is no answer of that kind. */
export function readAnswer(kind: GoldenPrompt['kind'], body: unknown): GoldenAnswer {
  const { system_fingerprint: fingerprint, choices, data, outputs } = body as Body;
  const told = typeof fingerprint === 'string' ? { fingerprint } : {};
  if (kind === 'tensors') return { ...told, outputs: outputsOf(outputs) };
  if (kind === 'embedding') {
    const vectors = [...data].sort((a, b) => a.index - b.index).map(({ embedding }) => numbers(embedding));
    return { ...told, vectors };
  }
  const { message, text, logprobs } = choices[0]!;
  if (kind === 'chat') return { ...told, text: messageText(message), ...chatTokens(logprobs) };
  return { ...told, text: textIn(text), ...completionTokens(logprobs) };
}

interface Message {
  content?: string | null;
  tool_calls?: { function?: { name?: string; arguments?: string } }[];
}

/** A call of a tool is an answer as well. */
function messageText({ content, tool_calls }: Message): string {
  const calls = (tool_calls ?? []).map(({ function: f }) => `${f?.name}(${f?.arguments})`);
  return [content ?? '', ...calls].filter((part) => part !== '').join('\n');
}

function textIn(value: unknown): string {
  if (typeof value !== 'string') throw new Error('an answer without a text');
  return value;
}

interface ChatLogprobs {
  content?: { token: string; logprob: number; top_logprobs?: { token: string; logprob: number }[] }[];
}

function chatTokens(logprobs: ChatLogprobs | null | undefined): Pick<GoldenAnswer, 'tokens'> {
  if (!Array.isArray(logprobs?.content) || logprobs.content.length === 0) return {};
  const tokens = logprobs.content.map(({ token, logprob, top_logprobs }) => ({
    text: token,
    logprob,
    top: sorted((top_logprobs ?? []).map((top) => ({ text: top.token, logprob: top.logprob }))),
  }));
  return { tokens };
}

interface CompletionLogprobs {
  tokens?: string[];
  token_logprobs?: number[];
  top_logprobs?: (Record<string, number> | null)[] | null;
}

function completionTokens(logprobs: CompletionLogprobs | null | undefined): Pick<GoldenAnswer, 'tokens'> {
  if (!Array.isArray(logprobs?.tokens) || logprobs.tokens.length === 0) return {};
  const tokens = logprobs.tokens.map((text, i) => ({
    text,
    logprob: logprobs.token_logprobs?.[i] ?? Number.NEGATIVE_INFINITY,
    top: sorted(
      Object.entries(logprobs.top_logprobs?.[i] ?? {}).map(([other, logprob]) => ({ text: other, logprob })),
    ),
  }));
  return { tokens };
}

function sorted(top: ToldToken['top']): ToldToken['top'] {
  return top.sort((a, b) => b.logprob - a.logprob);
}

function outputsOf(outputs: Body['outputs']): NonNullable<GoldenAnswer['outputs']> {
  return outputs.map(({ name, shape, data }) => ({
    name,
    shape: numbers(shape),
    data: numbers(data.flat(Number.POSITIVE_INFINITY)),
  }));
}

function numbers(values: unknown): number[] {
  if (
    !Array.isArray(values) ||
    !values.every((value) => typeof value === 'number' || typeof value === 'boolean')
  )
    throw new Error('an answer without the numbers that it should have');
  return values.map(Number);
}
