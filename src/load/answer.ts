import { eventData, readUsage } from '../protocols/openai/events.ts';

/** What an answer's usage says. */
export interface AnswerTokens {
  /** Of the prompt, those left out that the engine knew from before. */
  read: number;
  output: number;
}

/** What one event of a stream means to a measurement. */
export interface Piece {
  /** It carries a part of the answer: words, reasoning, a tool call. */
  token: boolean;
  done: boolean;
  error: boolean;
  /** Where the event tells usage. */
  usage: AnswerTokens | undefined;
}

const NOTHING: Piece = { token: false, done: false, error: false, usage: undefined };

export function readPiece(event: Buffer): Piece {
  const data = eventData(event);
  if (data === undefined) return NOTHING;
  if (data === '[DONE]') return { ...NOTHING, done: true };
  const value = parse(data);
  if (value === undefined || value.error) return { ...NOTHING, error: true };
  return {
    token: Array.isArray(value.choices) && value.choices.some(carriesToken),
    done: false,
    error: false,
    usage: tokensOf(value.usage),
  };
}

/** Tokens of a whole answer and its prompt. */
export function usageTokens(pieces: readonly Buffer[]): AnswerTokens | undefined {
  if (pieces.length === 0) return undefined;
  const text = Buffer.concat(pieces).toString('utf8');
  if (!text.includes('"usage"')) return undefined;
  return tokensOf(parse(text)?.['usage']);
}

function tokensOf(value: unknown): AnswerTokens | undefined {
  const usage = readUsage(value);
  if (!usage) return undefined;
  const details = (value as { prompt_tokens_details?: { cached_tokens?: unknown } | null })
    .prompt_tokens_details;
  const cached = Number(details?.cached_tokens ?? 0);
  const read = usage.tokensIn - cached;
  return { read: read >= 0 ? read : usage.tokensIn, output: usage.tokensOut };
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // not JSON, which the caller counts as it sees fit
  }
}

function carriesToken(choice: unknown): boolean {
  const { delta, text } = (choice ?? {}) as { delta?: unknown; text?: unknown };
  if (typeof text === 'string' && text !== '') return true;
  if (typeof delta !== 'object' || delta === null) return false;
  return Object.entries(delta).some(
    ([key, value]) => key !== 'role' && value !== null && value !== '' && !isEmptyList(value),
  );
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
