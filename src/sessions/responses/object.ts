import { isObject, type Json } from '../../protocols/json-object.ts';
import type { ResponseRequest } from './request.ts';

/** What stays the same of a response from its first event to the object that is kept. */
export interface ResponseHead {
  id: string;
  /** Seconds since the epoch. */
  createdAt: number;
  request: ResponseRequest;
}

export interface ResponseEnd {
  status: 'completed' | 'incomplete' | 'failed' | 'in_progress';
  output: readonly Json[];
  usage?: Json | undefined;
  /** Why it is incomplete. */
  reason?: string | undefined;
  error?: { code: string; message: string } | undefined;
  completedAt?: number | undefined;
}

/** OpenAI's response object. */
export function responseObject({ id, createdAt, request }: ResponseHead, end: ResponseEnd): Json {
  return {
    id,
    object: 'response',
    created_at: createdAt,
    status: end.status,
    background: false,
    completed_at: end.completedAt ?? null,
    error: end.error ?? null,
    incomplete_details: end.reason === undefined ? null : { reason: end.reason },
    output: end.output,
    usage: end.usage ?? null,
    conversation: request.conversation === undefined ? null : { id: request.conversation },
    ...settingsOf(request),
  };
}

/** What was asked for, as the response tells it back. */
function settingsOf(request: ResponseRequest): Json {
  const { tools, formats, passed } = request;
  const given = (key: string) => (passed[key] === undefined ? {} : { [key]: passed[key] });
  return {
    instructions: request.instructions ?? null,
    max_output_tokens: request.outputTokensMax ?? null,
    max_tool_calls: request.toolCallsMax ?? null,
    metadata: request.metadata,
    model: request.model,
    parallel_tool_calls: tools.parallel ?? true,
    previous_response_id: request.previous ?? null,
    reasoning: formats.reasoning,
    service_tier: passed['service_tier'] ?? 'default',
    store: request.store,
    temperature: passed['temperature'] ?? null,
    text: formats.text,
    tool_choice: tools.choiceEchoed,
    tools: tools.echoed,
    top_logprobs: formats.topLogprobs ?? 0,
    top_p: passed['top_p'] ?? null,
    truncation: request.truncation ?? 'disabled',
    user: passed['user'] ?? null,
    ...given('prompt_cache_key'),
    ...given('safety_identifier'),
  };
}

/** The usage of a chat; undefined where the engine told none. */
export function usageOf(usage: unknown): Json | undefined {
  if (!isObject(usage)) return undefined;
  const [tokensIn, tokensOut] = [count(usage['prompt_tokens']), count(usage['completion_tokens'])];
  return {
    input_tokens: tokensIn,
    input_tokens_details: { cached_tokens: detail(usage['prompt_tokens_details'], 'cached_tokens') },
    output_tokens: tokensOut,
    output_tokens_details: {
      reasoning_tokens: detail(usage['completion_tokens_details'], 'reasoning_tokens'),
    },
    total_tokens: tokensIn + tokensOut,
  };
}

/** Why an answer is not whole, by the finish reason of the chat; undefined where it is. */
export function incompleteFor(finish: unknown): string | undefined {
  if (finish === 'length') return 'max_output_tokens';
  return finish === 'content_filter' ? 'content_filter' : undefined;
}

function detail(details: unknown, key: string): number {
  return isObject(details) ? count(details[key]) : 0;
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}
