import { isObject, type Json } from '../../protocols/json-object.ts';
import { given, optionalNumber, optionalObject, optionalText, Refused, text } from '../refused.ts';

/** How the answer is to look, and how much is thought before. */
export interface Formats {
  /** Members of the chat. */
  chat: Json;
  /** As the response tells them back. */
  text: Json;
  reasoning: Json;
  topLogprobs: number | undefined;
}

const LOGPROBS = 'message.output_text.logprobs';
/** Of tools that no response here can have used, and of images that are told back in any case: nothing has to be done for them. */
const WITHOUT_EFFECT = [
  'message.input_image.image_url',
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
];

/** Throws Refused. */
export function readFormats(body: Json): Formats {
  const chat: Json = {};
  const answer = optionalObject(body, 'text') ?? {};
  const format = optionalObject(answer, 'format', 'text.format') ?? { type: 'text' };
  const wanted = responseFormat(format);
  if (wanted) chat['response_format'] = wanted;
  const verbosity = optionalText(answer, 'verbosity', 'text.verbosity');
  if (verbosity !== undefined) chat['verbosity'] = verbosity;

  const reasoning = optionalObject(body, 'reasoning') ?? {};
  const effort = optionalText(reasoning, 'effort', 'reasoning.effort');
  if (effort !== undefined) chat['reasoning_effort'] = effort;
  for (const key of ['summary', 'generate_summary']) {
    const summary = optionalText(reasoning, key, `reasoning.${key}`);
    // `auto` leaves it to whoever answers.
    if (summary !== undefined && summary !== 'auto')
      throw new Refused('What a model thinks is not summarised here.', `reasoning.${key}`);
  }
  const topLogprobs = optionalNumber(body, 'top_logprobs', { min: 0, max: 20, whole: true });
  const include = given(body, 'include') ?? [];
  if (!Array.isArray(include)) throw new Refused("Expected 'include' to be a list.", 'include');
  for (const each of include) {
    if (each !== LOGPROBS && !WITHOUT_EFFECT.includes(each as string))
      throw new Refused(`'${String(each).slice(0, 100)}' cannot be included here.`, 'include');
  }
  if (topLogprobs !== undefined && topLogprobs > 0) chat['top_logprobs'] = topLogprobs;
  if (include.includes(LOGPROBS) || chat['top_logprobs'] !== undefined) chat['logprobs'] = true;
  return {
    chat,
    text: { format, ...(verbosity === undefined ? {} : { verbosity }) },
    reasoning: { effort: effort ?? null, summary: null },
    topLogprobs,
  };
}

function responseFormat(format: Json): Json | undefined {
  switch (format['type']) {
    case 'text':
      return undefined;
    case 'json_object':
      return { type: 'json_object' };
    case 'json_schema': {
      const schema = given(format, 'schema');
      if (!isObject(schema))
        throw new Refused("Expected 'text.format.schema' to be an object.", 'text.format.schema');
      const { type: _, ...described } = format;
      return {
        type: 'json_schema',
        json_schema: { ...described, name: text(format, 'name', 'text.format.name') },
      };
    }
    default:
      throw new Refused(
        "Expected 'text.format.type' to be text, json_object or json_schema.",
        'text.format.type',
      );
  }
}
