import { z } from 'zod';
import { badRequest, unknownParameter } from '../fault.ts';

/**
 * What the two endpoints take. What cannot be done is refused, so that nobody waits for it in vain; so are members that
 * neither OpenAI's API nor this host knows. Those of the API that change nothing here are passed over.
 */

/** How the next token is chosen. */
export interface Sampling {
  temperature: number;
  topP: number;
  /** 0: all. */
  topK: number;
  minP: number;
  seed: number | undefined;
  presencePenalty: number;
  frequencyPenalty: number;
  /** 1: none. */
  repetitionPenalty: number;
  /** Added to the logit of a token. */
  bias: ReadonlyMap<number, number>;
}

export type Shape = { kind: 'text' } | { kind: 'json' } | { kind: 'schema'; schema: unknown };

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  text: string;
}

interface GenerationRequest {
  sampling: Sampling;
  /** Undefined: as many as fit. */
  maxTokens: number | undefined;
  stop: string[];
  shape: Shape;
  /** How many alternatives to tell of each token; undefined: no log-probabilities at all. */
  topLogprobs: number | undefined;
  stream: boolean;
  includeUsage: boolean;
}

export interface ChatRequest extends GenerationRequest {
  messages: ChatMessage[];
}

export interface CompletionRequest extends GenerationRequest {
  /** Text, or ids of tokens. */
  prompt: string | number[];
}

/** What llama.cpp's own server does where the caller says nothing: small models ramble without it. */
const DEFAULTS = { temperature: 0.8, topP: 0.95, topK: 40, minP: 0.05 };

const STOPS_MAX = 16;
const STOP_CHARACTERS_MAX = 200;
const TOP_LOGPROBS_MAX = 20;

const number = (min: number, max: number) => z.number().min(min).max(max).nullish();
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) => z.int().min(min).max(max).nullish();
const stopText = z.string().min(1).max(STOP_CHARACTERS_MAX);

const generation = {
  temperature: number(0, 2),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: whole(-1, 1_000_000),
  min_p: number(0, 1),
  seed: z.int().nullish(),
  presence_penalty: number(-2, 2),
  frequency_penalty: number(-2, 2),
  repetition_penalty: z.number().gt(0).max(10).nullish(),
  logit_bias: z.record(z.string().regex(/^\d+$/), z.number().min(-100).max(100)).nullish(),
  max_tokens: whole(1),
  n: z.literal(1, 'this host gives one answer to a request: n must be 1').nullish(),
  stop: z.union([stopText, z.array(stopText).max(STOPS_MAX)]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  response_format: z
    .discriminatedUnion('type', [
      z.looseObject({ type: z.literal('text') }),
      z.looseObject({ type: z.literal('json_object') }),
      z.looseObject({
        type: z.literal('json_schema'),
        json_schema: z.looseObject({ name: z.string().nullish(), schema: z.unknown() }),
      }),
    ])
    .nullish(),
};

const textPart = z.looseObject({ type: z.literal('text'), text: z.string() });
const content = z.union([z.string(), z.array(textPart).min(1)], {
  error: 'expected a text, or a list of parts of type text: this host reads nothing else',
});
const message = z.discriminatedUnion(
  'role',
  [
    z.looseObject({ role: z.literal(['system', 'developer']), content }),
    z.looseObject({ role: z.literal('user'), content }),
    z.looseObject({
      role: z.literal('assistant'),
      content: content.nullish(),
      tool_calls: z.null().optional(),
    }),
  ],
  { error: "expected role 'system', 'developer', 'user' or 'assistant': this host calls no tools" },
);

/** Members of the API that say something about the caller or to a service that this host is not. */
const WITHOUT_EFFECT = [
  ...['model', 'user', 'safety_identifier', 'metadata', 'store', 'service_tier', 'prompt_cache_key'],
  ...['prompt_cache_retention', 'parallel_tool_calls', 'tools', 'tool_choice', 'function_call'],
  ...['reasoning_effort', 'verbosity', 'prediction'],
];

const none = (what: string) =>
  z.union([z.null(), z.array(z.unknown()).max(0)], `this host ${what}`).optional();

const chat = z.looseObject({
  ...generation,
  messages: z.array(message).min(1, 'expected one message or more'),
  max_completion_tokens: whole(1),
  logprobs: z.boolean().nullish(),
  top_logprobs: whole(0, TOP_LOGPROBS_MAX),
  functions: none('calls no functions'),
  modalities: z.array(z.literal('text')).max(1).nullish(),
});

const completion = z.looseObject({
  ...generation,
  prompt: z.union([z.string(), z.array(z.string()).length(1), z.array(z.int().min(0)).min(1)], {
    error: 'expected one text, or the ids of its tokens',
  }),
  logprobs: whole(0, 5),
  echo: z.literal(false, 'this host does not echo the prompt').nullish(),
  best_of: z.literal(1, 'this host generates one answer: best_of must be 1').nullish(),
  suffix: z.union([z.null(), z.literal('')], 'this host continues text and does not fill gaps').optional(),
});

export function parseChat(body: Record<string, unknown>): ChatRequest {
  refuseTools(body);
  refuseUnknown(body, chat);
  const read = parse(chat, body);
  if (read.top_logprobs != null && read.logprobs !== true) {
    throw badRequest('top_logprobs needs logprobs: true', 'top_logprobs');
  }
  return {
    ...common(read),
    maxTokens: read.max_completion_tokens ?? read.max_tokens ?? undefined,
    topLogprobs: read.logprobs ? (read.top_logprobs ?? 0) : undefined,
    messages: read.messages.map(({ role, content: said }) => ({
      role: role === 'developer' ? 'system' : role,
      text: typeof said === 'string' ? said : (said ?? []).map((part) => part.text).join(''),
    })),
  };
}

export function parseCompletion(body: Record<string, unknown>): CompletionRequest {
  refuseUnknown(body, completion);
  const read = parse(completion, body);
  const { prompt } = read;
  return {
    ...common(read),
    maxTokens: read.max_tokens ?? 16, // OpenAI's own default
    topLogprobs: read.logprobs ?? undefined,
    prompt:
      typeof prompt === 'string' || typeof prompt[0] === 'number'
        ? (prompt as string | number[])
        : (prompt[0] as string),
  };
}

/** Tools that the model may leave alone are no reason to refuse; tools that it could be asked to call are. */
function refuseTools(body: Record<string, unknown>): void {
  const { tools, tool_choice: choice } = body;
  if (Array.isArray(tools) && tools.length > 0 && choice !== 'none') {
    throw badRequest('this host calls no tools: leave out `tools`, or set tool_choice to none', 'tools');
  }
}

function refuseUnknown(body: Record<string, unknown>, { shape }: z.ZodObject): void {
  const unknown = Object.keys(body).find(
    (name) => !Object.hasOwn(shape, name) && !WITHOUT_EFFECT.includes(name),
  );
  if (unknown !== undefined) throw unknownParameter(unknown);
}

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = issue.path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('');
  const param = path.replace(/^\./, '');
  throw badRequest(param ? `${param}: ${issue.message}` : issue.message, param || undefined);
}

type Common = z.output<z.ZodObject<typeof generation>>;

function common(read: Common): Omit<GenerationRequest, 'maxTokens' | 'topLogprobs'> {
  if (read.stream_options != null && read.stream !== true) {
    throw badRequest(
      "the 'stream_options' parameter is only allowed when 'stream' is enabled",
      'stream_options',
    );
  }
  return {
    sampling: {
      temperature: read.temperature ?? DEFAULTS.temperature,
      topP: read.top_p ?? DEFAULTS.topP,
      topK: Math.max(0, read.top_k ?? DEFAULTS.topK),
      minP: read.min_p ?? DEFAULTS.minP,
      seed: read.seed ?? undefined,
      presencePenalty: read.presence_penalty ?? 0,
      frequencyPenalty: read.frequency_penalty ?? 0,
      repetitionPenalty: read.repetition_penalty ?? 1,
      bias: new Map(Object.entries(read.logit_bias ?? {}).map(([token, bias]) => [Number(token), bias])),
    },
    stop: typeof read.stop === 'string' ? [read.stop] : (read.stop ?? []),
    shape: shapeOf(read.response_format),
    stream: read.stream ?? false,
    includeUsage: read.stream_options?.include_usage ?? false,
  };
}

function shapeOf(format: Common['response_format']): Shape {
  if (format?.type === 'json_object') return { kind: 'json' };
  if (format?.type === 'json_schema') return { kind: 'schema', schema: format.json_schema.schema ?? {} };
  return { kind: 'text' };
}
