import type { Route } from '../../gateway/contracts.ts';
import type { Json } from '../../protocols/json-object.ts';
import type { Item } from '../items.ts';
import { Refused } from '../refused.ts';
import type { ResponseRequest } from './request.ts';
import { chatMessages } from './transcript.ts';

/** The chat that a turn is asked as. Throws Refused where its items are none. */
export function chatBody(request: ResponseRequest, items: readonly Item[], route: Route | undefined): Buffer {
  const { passed, formats, tools, model, instructions, outputTokensMax, stream } = request;
  const messages = chatMessages(items, instructions);
  if (messages.length === (instructions === undefined ? 0 : 1))
    throw new Refused(
      "There is nothing to answer: 'input' is missing, or nothing that a model reads.",
      'input',
    );
  const chat: Json = { ...passed, model, messages, ...formats.chat, ...tools.chat };
  if (outputTokensMax !== undefined) chat[capOf(route)] = outputTokensMax;
  if (stream) {
    chat['stream'] = true;
    chat['stream_options'] = { include_usage: true };
  }
  return Buffer.from(JSON.stringify(chat));
}

/** The newer name where every engine of the route knows it. */
function capOf(route: Route | undefined): 'max_tokens' | 'max_completion_tokens' {
  const targets = route?.targets.openai ?? [];
  return targets.every(({ backend }) => backend.dialect.chatCap === 'max_completion_tokens')
    ? 'max_completion_tokens'
    : 'max_tokens';
}
