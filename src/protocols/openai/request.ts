import { type Member, type Members, rawValue, scanMembers, stringValue } from '../json-members.ts';

/** What Armature reads of a request on OpenAI's API. Everything else passes as it is. */
export interface OpenaiRequest {
  model: string;
  stream: boolean;
  /** Tokens that the answer may have, where the caller said so. */
  outputTokensMax: number | undefined;
  /** Several choices are asked for: by `n`, or by a list of prompts. */
  severalChoices: boolean;
  /** How many answers are made: of each prompt `n`, or `best_of` where that is more. */
  choices: number;
  promptCacheKey: string | undefined;
  user: string | undefined;
  /** The caller asked for the chunk with the usage, or said that it wants none. */
  usageAsked: boolean | undefined;
  /** Places of what may have to change. */
  places: {
    model: Member;
    streamOptions: Member | undefined;
    usage: Member | undefined;
    inside: number;
    caps: readonly Member[];
  };
}

export interface BadRequest {
  message: string;
  param: string | undefined;
}

/** Members that Armature decides on; one of them given twice is refused, since two readers could disagree. */
const DECIDED = [
  'model',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'prompt_cache_key',
  'user',
  'n',
  'best_of',
];

/** And `prompt`, of which only the kind is looked at. */
const LOOKED_FOR = [...DECIDED, 'prompt'];

/** Members that say how long an answer may be, one choice of it. */
const OUTPUT_CAPS = ['max_tokens', 'max_completion_tokens'] as const;
export type OutputCap = (typeof OUTPUT_CAPS)[number];

export function readOpenaiRequest(body: Buffer): OpenaiRequest | BadRequest {
  const scanned = scanMembers(body, 0, body.length, LOOKED_FOR);
  if (typeof scanned === 'string') return bad(`We could not parse the body of your request: ${scanned}.`);
  const found = new Map<string, Member>();
  let prompts = 0;
  for (const member of scanned.members) {
    if (member.key === 'prompt') {
      prompts = Math.max(prompts, promptsIn(body, member));
      continue;
    }
    if (found.has(member.key)) return bad(`The member '${member.key}' is given twice.`, member.key);
    found.set(member.key, member);
  }
  const model = found.get('model');
  if (!model) return bad("You must provide a model: the member 'model' is missing.", 'model');
  const name = stringValue(body, model);
  if (name === undefined || name === '')
    return bad("The member 'model' must be a string that is not empty.", 'model');
  const stream = readStream(body, found.get('stream'));
  if (stream === undefined) return bad("The member 'stream' must be true or false.", 'stream');
  const usage = readUsage(body, found.get('stream_options'));
  if (usage === undefined)
    return bad(
      "The member 'stream_options' must be an object whose 'include_usage' is true or false.",
      'stream_options',
    );
  const n = readCount(body, found.get('n')) ?? 1;
  const caps = OUTPUT_CAPS.flatMap((key) => found.get(key) ?? []);
  return {
    model: name,
    stream,
    outputTokensMax:
      readCount(body, found.get('max_completion_tokens')) ?? readCount(body, found.get('max_tokens')),
    severalChoices: n > 1 || prompts > 0,
    choices: Math.max(1, prompts) * Math.max(1, n, readCount(body, found.get('best_of')) ?? 1),
    promptCacheKey: readText(body, found.get('prompt_cache_key')),
    user: readText(body, found.get('user')),
    usageAsked: usage.asked,
    places: {
      model,
      streamOptions: found.get('stream_options'),
      usage: usage.place,
      inside: scanned.inside,
      caps,
    },
  };
}

/** What of a body has to change on its way upstream. */
export interface Changes {
  /** The engine's name of the model. */
  model: string;
  /** A stream is to end with its usage. */
  addUsage: boolean;
  /** The longest answer, in tokens, where it has to be shorter than the caller allows; `name` is how the engine knows it. */
  output?: { tokensMax: number; name: OutputCap } | undefined;
}

/** The bytes that go upstream: the caller's own, save for what has to change. */
export function rewriteOpenaiBody(
  body: Buffer,
  request: OpenaiRequest,
  { model, addUsage, output }: Changes,
): Buffer {
  const { places } = request;
  const edits: Edit[] = [{ start: places.model.start, end: places.model.end, text: JSON.stringify(model) }];
  if (addUsage && request.stream && request.usageAsked === undefined) {
    const options = places.streamOptions;
    if (!options)
      edits.push({
        start: places.inside,
        end: places.inside,
        text: '"stream_options":{"include_usage":true},',
      });
    else edits.push(addUsageTo(body, options, places.usage));
  }
  if (output) edits.push(...lowerCaps(body, places, output));
  edits.sort((a, b) => a.start - b.start);
  return edited(body, edits);
}

/** The body with a longest answer of at most `tokensMax` wherever it says how long that may be. */
export function withCapsLowered(body: Buffer, { places }: OpenaiRequest, tokensMax: number): Buffer {
  if (places.caps.length === 0) return body;
  const edits = lowerCaps(body, places, { tokensMax, name: 'max_tokens' });
  return edited(
    body,
    edits.sort((a, b) => a.start - b.start),
  );
}

interface Edit {
  start: number;
  end: number;
  text: string;
}

/** `body` with the bytes of each edit replaced by its text; edits are in order and do not overlap. */
function edited(body: Buffer, edits: readonly Edit[]): Buffer {
  let length = body.length;
  for (const { start, end, text } of edits) length += Buffer.byteLength(text) - (end - start);
  const out = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const { start, end, text } of edits) {
    to += body.copy(out, to, from, start);
    to += out.write(text, to);
    from = end;
  }
  body.copy(out, to, from);
  return out;
}

/** Lowers what the caller allows, wherever it says so; where it says nothing, it is said now. */
function lowerCaps(
  body: Buffer,
  { caps, inside }: OpenaiRequest['places'],
  { tokensMax, name }: NonNullable<Changes['output']>,
): Edit[] {
  if (caps.length === 0) return [{ start: inside, end: inside, text: `"${name}":${tokensMax},` }];
  return caps
    .filter((cap) => !((readCount(body, cap) ?? Number.POSITIVE_INFINITY) <= tokensMax))
    .map(({ start, end }) => ({ start, end, text: String(tokensMax) }));
}

function addUsageTo(body: Buffer, options: Member, usage: Member | undefined): Edit {
  if (usage) return { start: usage.start, end: usage.end, text: 'true' };
  const scanned = scanMembers(body, options.start, options.end);
  if (typeof scanned === 'string')
    return { start: options.start, end: options.end, text: '{"include_usage":true}' };
  const comma = scanned.members.length > 0 ? ',' : '';
  return { start: scanned.inside, end: scanned.inside, text: `"include_usage":true${comma}` };
}

function readStream(body: Buffer, member: Member | undefined): boolean | undefined {
  if (!member) return false;
  const text = rawValue(body, member);
  if (text === 'true') return true;
  return text === 'false' || text === 'null' ? false : undefined;
}

/** `asked` undefined: the caller said nothing (or null). The result undefined: what it said cannot be read. */
function readUsage(
  body: Buffer,
  options: Member | undefined,
): { asked: boolean | undefined; place: Member | undefined } | undefined {
  if (!options || rawValue(body, options) === 'null') return { asked: undefined, place: undefined };
  const scanned: Members | string = scanMembers(body, options.start, options.end);
  if (typeof scanned === 'string') return undefined;
  const places = scanned.members.filter((member) => member.key === 'include_usage');
  if (places.length === 0) return { asked: undefined, place: undefined };
  if (places.length > 1) return undefined;
  const text = rawValue(body, places[0]!);
  if (text === 'null') return { asked: undefined, place: places[0] };
  return text === 'true' || text === 'false' ? { asked: text === 'true', place: places[0] } : undefined;
}

function readCount(body: Buffer, member: Member | undefined): number | undefined {
  if (!member) return undefined;
  const count = Number(rawValue(body, member));
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

const KEY_BYTES_MAX = 1024;

/** How many prompts a list of texts or of lists of tokens has; 0 for a text, and a list of tokens is no list of prompts. */
function promptsIn(body: Buffer, { start, end }: Member): number {
  if (!/^\[\s*["[]/.test(body.toString('latin1', start, Math.min(end, start + 100)))) return 0;
  try {
    return (JSON.parse(body.toString('utf8', start, end)) as unknown[]).length;
  } catch {
    return 1; // the engine will say what is wrong with it
  }
}

function readText(body: Buffer, member: Member | undefined): string | undefined {
  if (!member || member.end - member.start > KEY_BYTES_MAX) return undefined;
  return stringValue(body, member) || undefined;
}

function bad(message: string, param?: string): BadRequest {
  return { message, param };
}
