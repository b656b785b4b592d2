import { isObject, type Json } from '../../protocols/json-object.ts';
import { readObject } from '../body.ts';
import { type Item, type Reference, readItems, userMessage } from '../items.ts';
import {
  given,
  metadataOf,
  optionalFlag,
  optionalNumber,
  optionalObject,
  optionalText,
  Refused,
} from '../refused.ts';
import { type Formats, readFormats } from './formats.ts';
import { readTools, type Tools } from './tools.ts';

/** What `POST /v1/responses` asks for. */
export interface ResponseRequest {
  model: string;
  input: (Item | Reference)[];
  previous: string | undefined;
  conversation: string | undefined;
  instructions: string | undefined;
  store: boolean;
  stream: boolean;
  truncation: 'auto' | 'disabled' | undefined;
  outputTokensMax: number | undefined;
  /** Of hosted tools, which there are none of: told back, and no more. */
  toolCallsMax: number | undefined;
  metadata: Record<string, string>;
  tools: Tools;
  formats: Formats;
  /** Members that a chat has under the same name, and those that only the engine knows. */
  passed: Json;
}

/** Members of a chat that have another name here, or no meaning: who sends them is mistaken. */
const OF_A_CHAT: Record<string, string> = {
  messages: "Send 'input' instead.",
  max_tokens: "Send 'max_output_tokens' instead.",
  max_completion_tokens: "Send 'max_output_tokens' instead.",
  response_format: "Send 'text.format' instead.",
  reasoning_effort: "Send 'reasoning.effort' instead.",
  functions: "Send 'tools' instead.",
  function_call: "Send 'tool_choice' instead.",
  n: 'A response is one answer.',
  logprobs: 'Send \'include: ["message.output_text.logprobs"]\' instead.',
  modalities: 'Responses are text.',
  audio: 'Responses are text.',
};

/** Members of a response that no chat engine can carry. */
const NOT_CARRIED: Record<string, string> = {
  prompt: 'Prompts are not kept here: send the text itself.',
  context_management: "Contexts are fitted by the route's own rules.",
};

/** Members that are read here; every other one passes to the engine as it is. */
const READ = new Set([
  'model',
  'input',
  'previous_response_id',
  'conversation',
  'instructions',
  'store',
  'stream',
  'stream_options',
  'truncation',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
  'include',
  'top_logprobs',
  'background',
  ...Object.keys(NOT_CARRIED),
]);

/** Reads the body. Throws Refused. */
export function readResponseRequest(bytes: Buffer): ResponseRequest {
  const body = readObject(bytes);
  for (const [key, hint] of [...Object.entries(OF_A_CHAT), ...Object.entries(NOT_CARRIED)]) {
    if (given(body, key) !== undefined) throw new Refused(`'${key}' is not taken here. ${hint}`, key);
  }
  if (optionalFlag(body, 'background') === true)
    throw new Refused('Responses are not made in the background here: leave `background` out.', 'background');
  const model = optionalText(body, 'model');
  if (!model) throw new Refused("You must provide a model: the member 'model' is missing.", 'model');
  const turn = readTurn(body);
  const truncation = optionalText(body, 'truncation');
  if (truncation !== undefined && truncation !== 'auto' && truncation !== 'disabled')
    throw new Refused("Expected 'truncation' to be auto or disabled.", 'truncation');
  const metadata = metadataOf(body) ?? {};
  if (metadata['armature_pinned'] === 'true') pin(turn.input);
  const stream = optionalFlag(body, 'stream') ?? false;
  readStreamOptions(body, stream);
  return {
    model,
    ...turn,
    store: optionalFlag(body, 'store') ?? true,
    stream,
    truncation,
    metadata,
    instructions: optionalText(body, 'instructions'),
    tools: readTools(body),
    formats: readFormats(body),
    outputTokensMax: optionalNumber(body, 'max_output_tokens', COUNT),
    toolCallsMax: optionalNumber(body, 'max_tool_calls', COUNT),
    passed: readPassed(body),
  };
}

const COUNT = { min: 1, max: Number.MAX_SAFE_INTEGER, whole: true };

/** What is said, and what it goes on from. */
function readTurn(body: Json): Pick<ResponseRequest, 'input' | 'previous' | 'conversation'> {
  const previous = optionalText(body, 'previous_response_id') || undefined;
  const conversation = readConversation(given(body, 'conversation'));
  if (previous !== undefined && conversation !== undefined) {
    throw new Refused(
      "'previous_response_id' and 'conversation' say different things: send one of them.",
      'previous_response_id',
    );
  }
  const input = readInput(given(body, 'input'));
  if (input.length === 0 && previous === undefined && conversation === undefined)
    throw new Refused("There is nothing to answer: 'input' is missing or empty.", 'input');
  return { input, previous, conversation };
}

/** What a chat has under the same name, and what only the engine knows. */
function readPassed(body: Json): Json {
  optionalNumber(body, 'temperature', { min: 0, max: 2 });
  optionalNumber(body, 'top_p', { min: 0, max: 1 });
  for (const key of ['user', 'prompt_cache_key', 'safety_identifier', 'service_tier'])
    optionalText(body, key);
  return Object.fromEntries(Object.entries(body).filter(([key, value]) => !READ.has(key) && value !== null));
}

function readInput(input: unknown): (Item | Reference)[] {
  if (input === undefined) return [];
  if (typeof input === 'string') return [userMessage(input)];
  if (!Array.isArray(input))
    throw new Refused("Expected 'input' to be a string or a list of items.", 'input');
  return readItems(input, 'input');
}

function readConversation(conversation: unknown): string | undefined {
  if (conversation === undefined) return undefined;
  const id = isObject(conversation) ? given(conversation, 'id') : conversation;
  if (typeof id !== 'string' || id === '')
    throw new Refused("Expected 'conversation' to be an id, or an object with one.", 'conversation');
  return id;
}

function readStreamOptions(body: Json, stream: boolean): void {
  const options = optionalObject(body, 'stream_options');
  if (options === undefined) return;
  if (!stream)
    throw new Refused("'stream_options' is for streams: send 'stream: true' with it.", 'stream_options');
  optionalFlag(options, 'include_obfuscation', 'stream_options.include_obfuscation');
}

/** For callers who cannot add members to their items. */
function pin(input: (Item | Reference)[]): void {
  for (const item of input) if (item.type === 'message') item.armature = { pinned: true };
}
