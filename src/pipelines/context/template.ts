import { Template } from '@huggingface/jinja';
import { isTangled } from './nesting.ts';
import { likePython, TEXT_FUNCTIONS } from './template-texts.ts';
import { type Message, textsOf } from './transcript.ts';

/** Tokens that templates write by name. */
export interface SpecialTokens {
  bos?: string | undefined;
  eos?: string | undefined;
}

/** A model's chat template: text of its maker, which makes the one prompt out of messages. */
export class ChatTemplate {
  readonly #template: Template;
  readonly #tokens: SpecialTokens;
  /** It reads parts of content by itself; others are given texts alone. */
  readonly #takesParts: boolean;

  /** Throws, in words, where the template cannot be read. */
  constructor(source: string, tokens: SpecialTokens) {
    this.#template = new Template(source);
    likePython(this.#template);
    this.#tokens = tokens;
    this.#takesParts = TAKES_PARTS.test(source);
  }

  /**
   * The prompt of a chat, as engines make it of the same template: with the beginning of an answer, tools as they were sent,
   * and the arguments of tool calls as objects. What callers wrote is put in as it is, and never read as a template. Throws
   * where the template refuses the messages.
   */
  render(messages: readonly Message['value'][], rest: Readonly<Record<string, unknown>>): string {
    const { tools, documents, chat_template_kwargs: extras, add_generation_prompt: opens } = rest;
    return this.#template.render({
      ...(typeof extras === 'object' && !Array.isArray(extras) ? extras : undefined),
      ...TEXT_FUNCTIONS,
      messages: messages.map((message) => this.#shown(message)),
      tools: Array.isArray(tools) && tools.length > 0 ? tools : null,
      documents: documents ?? null,
      add_generation_prompt: opens !== false,
      bos_token: this.#tokens.bos ?? '',
      eos_token: this.#tokens.eos ?? '',
    });
  }

  #shown(message: Message['value']): Record<string, unknown> {
    const { content, tool_calls: calls } = message;
    const shown: Record<string, unknown> = { ...message };
    if (Array.isArray(calls)) shown.tool_calls = calls.map(withArguments);
    if (!this.#takesParts && Array.isArray(content)) {
      shown.content = textsOf(message).join('\n');
    }
    return shown;
  }
}

/** Such as `for part in message.content`, or a question of its kind. */
const TAKES_PARTS =
  /\bin\s+(?:\w+\.content|\w+\[['"]content['"]\])\s*(?:\||%|-%)|content['"\])]*\s+is\s+(?:not\s+)?(?:string|iterable|sequence)/;

/** OpenAI writes arguments as JSON in a text; templates are made for the object. */
function withArguments(call: unknown): unknown {
  const { function: called } = (call ?? {}) as { function?: { arguments?: unknown } };
  if (typeof called?.arguments !== 'string') return call;
  try {
    const given: unknown = JSON.parse(called.arguments);
    return isTangled(given) ? call : { ...(call as object), function: { ...called, arguments: given } };
  } catch {
    return call; // it stays a text
  }
}
