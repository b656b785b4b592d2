import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isMap } from '../../config/shape.ts';

/** Golden sets: prompts or tensors, one JSON object a line, with the decision that is read out of each answer. */

const decision = z.union(
  [
    z.literal(['text', 'first-word', 'largest', 'nearest']).transform((by) => ({ by })),
    z.strictObject({ by: z.literal(['text', 'first-word', 'nearest']) }),
    z.strictObject({ by: z.literal('largest'), output: z.string().optional() }),
    z.strictObject({ by: z.literal('threshold'), at: z.number(), output: z.string().optional() }),
    z.strictObject({ by: z.literal('member'), path: z.string().regex(/^(\/[^/]*)+$/) }),
  ],
  {
    error:
      'expected text, first-word, largest, nearest, { by: threshold, at }, { by: largest, output } or { by: member, path: /MEMBER }',
  },
);

const line = z.strictObject(
  {
    id: z.string().min(1).max(200).optional(),
    kind: z
      .literal(['chat', 'completion', 'embedding', 'tensors'], {
        error: 'expected chat, completion, embedding or tensors',
      })
      .optional(),
    request: z.record(z.string(), z.unknown()),
    decision: decision.optional(),
    label: z
      .union([z.string(), z.number(), z.boolean()])
      .transform((value) => String(value))
      .optional(),
  },
  {
    error: (issue) =>
      issue.code === 'invalid_type' ? 'expected an object, such as {"messages": [...]}' : undefined,
  },
);

/** How a decision is read out of an answer. */
export type DecisionRule =
  /** Its whole text, white space at both ends left out. */
  | { by: 'text' }
  /** The first word of its text. */
  | { by: 'first-word' }
  /** The place of the greatest value of an output, of each row where there are several. */
  | { by: 'largest'; output?: string | undefined }
  /** Whether the value of an output is at or above a number: `yes` or `no`. */
  | { by: 'threshold'; at: number; output?: string | undefined }
  /** A member of the JSON that the text is, by its JSON pointer. */
  | { by: 'member'; path: string }
  /** Of several embedded texts, which is most like the first. */
  | { by: 'nearest' };

export interface GoldenPrompt {
  /** Unique in its set; the number of its line where it has none. */
  id: string;
  kind: 'chat' | 'completion' | 'embedding' | 'tensors';
  /** The body of the call, without the model. */
  request: Record<string, unknown>;
  decision: DecisionRule;
  /** The right decision, where it is known. */
  label?: string;
}

export interface GoldenSet {
  /** Of the bytes of the file, in hexadecimal. */
  sha256: string;
  prompts: GoldenPrompt[];
}

/** The most prompts of one set. */
const GOLDEN_PROMPTS_MAX = 10_000;
/** The most characters of its file. */
const GOLDEN_CHARS_MAX = 3 * 1024 * 1024;

const RULES: Record<GoldenPrompt['kind'], { usual: DecisionRule; allowed: readonly DecisionRule['by'][] }> = {
  chat: { usual: { by: 'text' }, allowed: ['text', 'first-word', 'member'] },
  completion: { usual: { by: 'text' }, allowed: ['text', 'first-word', 'member'] },
  embedding: { usual: { by: 'nearest' }, allowed: ['nearest'] },
  tensors: { usual: { by: 'largest' }, allowed: ['largest', 'threshold'] },
};

/** The member of a request that tells its kind. */
const TOLD_BY: Record<GoldenPrompt['kind'], string> = {
  chat: 'messages',
  completion: 'prompt',
  embedding: 'input',
  tensors: 'inputs',
};
const KINDS = Object.keys(TOLD_BY) as GoldenPrompt['kind'][];

/** Throws a GoldenFault that names the line where the text is no golden set. */
export function readGolden(text: string): GoldenSet {
  if (text.length > GOLDEN_CHARS_MAX)
    throw new GoldenFault(`it has more than ${GOLDEN_CHARS_MAX} characters`);
  const ids = new Set<string>();
  const prompts = text.split('\n').flatMap((each, i) => {
    if (each.trim() === '') return [];
    const prompt = readLine(each, i + 1);
    if (ids.has(prompt.id)) throw new GoldenFault(`line ${i + 1}: there is another '${prompt.id}'`);
    ids.add(prompt.id);
    return [prompt];
  });
  if (prompts.length === 0) throw new GoldenFault('it has no prompt');
  if (prompts.length > GOLDEN_PROMPTS_MAX)
    throw new GoldenFault(`it has more than ${GOLDEN_PROMPTS_MAX} prompts`);
  return { sha256: createHash('sha256').update(text).digest('hex'), prompts };
}

export class GoldenFault extends Error {}

function readLine(text: string, number: number): GoldenPrompt {
  const parsed = line.safeParse(inFull(parsedJson(text, number)));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = issue!.path.join('.');
    throw new GoldenFault(`line ${number}: ${path === '' ? '' : `${path}: `}${issue!.message}`);
  }
  const { id = String(number), request, decision, label } = parsed.data;
  const kind = parsed.data.kind ?? KINDS.find((each) => Object.hasOwn(request, TOLD_BY[each]));
  if (kind === undefined)
    throw new GoldenFault(
      `line ${number}: expected a request with ${KINDS.map((each) => TOLD_BY[each]).join(', ')}, or the kind that it is of`,
    );
  const { usual, allowed } = RULES[kind];
  const rule: DecisionRule = decision ?? usual;
  if (!allowed.includes(rule.by))
    throw new GoldenFault(
      `line ${number}: decision: of ${kind} it is ${allowed.join(' or ')}, not ${rule.by}`,
    );
  if (kind === 'embedding' && !(Array.isArray(request['input']) && request['input'].length >= 3))
    throw new GoldenFault(`line ${number}: request.input: expected a list of three texts or more`);
  return { id, kind, request, decision: rule, ...(label !== undefined && { label }) };
}

/** A line that is nothing but the body of a call, as callers send it, is the request of a prompt. */
function inFull(value: unknown): unknown {
  if (!isMap(value) || Object.hasOwn(value, 'request')) return value;
  const { id, kind, decision, label, ...request } = value;
  return Object.keys(request).length === 0 ? value : { id, kind, decision, label, request };
}

function parsedJson(text: string, number: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GoldenFault(`line ${number}: ${(error as Error).message}`);
  }
}
