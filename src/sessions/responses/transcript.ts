import type { Json } from '../../protocols/json-object.ts';
import type { Item, Message, Part } from '../items.ts';
import { Refused } from '../refused.ts';

/**
 * Items as the messages of a chat: text and parts, never tokens. What one message of a chat holds is put together: an
 * assistant's words and the calls that it made with them. Throws Refused where a call and its output do not belong together,
 * which no engine would take.
 */
export function chatMessages(items: readonly Item[], instructions: string | undefined): Json[] {
  const messages: Json[] = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
  // How many of a call's outputs are still to come, by its id: some engines give several calls of one answer the same.
  const calls = new Map<string, number>();
  for (const item of items) {
    switch (item.type) {
      case 'message': {
        const last = messages.at(-1);
        if (item.role === 'assistant' && last?.['tool_calls']) {
          last['content'] = String(last['content'] ?? '') + wordsOf(item.content); // said with its calls
          break;
        }
        refuseOpen(calls);
        messages.push(messageOf(item));
        break;
      }
      case 'function_call': {
        const call = {
          id: item.call_id,
          type: 'function',
          function: { name: item.name, arguments: item.arguments },
        };
        const last = messages.at(-1);
        calls.set(item.call_id, (calls.get(item.call_id) ?? 0) + 1);
        if (last?.['role'] === 'assistant') ((last['tool_calls'] ??= []) as Json[]).push(call);
        else messages.push({ role: 'assistant', content: null, tool_calls: [call] });
        break;
      }
      case 'function_call_output':
        takeOutput(calls, item.call_id);
        messages.push({ role: 'tool', tool_call_id: item.call_id, content: outputOf(item.output) });
        break;
      case 'reasoning':
        break; // what one model has thought is not for the next one to read
    }
  }
  refuseOpen(calls);
  return messages;
}

function takeOutput(calls: Map<string, number>, id: string): void {
  const open = calls.get(id);
  if (open === undefined)
    throw new Refused(`There is no call for the output with the call_id '${id}'.`, 'input');
  if (open === 0) throw new Refused(`The call with the call_id '${id}' has its output already.`, 'input');
  calls.set(id, open - 1);
}

function refuseOpen(calls: Map<string, number>): void {
  for (const [id, open] of calls) {
    if (open > 0) throw new Refused(`There is no output for the call with the call_id '${id}'.`, 'input');
  }
  calls.clear();
}

function messageOf({ role, content, armature }: Message): Json {
  const more = armature === undefined ? {} : { armature };
  // Templates of open models know no developer.
  if (role === 'developer' || role === 'system')
    return { role: 'system', content: wordsOf(content), ...more };
  if (role === 'assistant') return { role, content: wordsOf(content), ...more };
  return { role, content: contentOf(content), ...more };
}

/** Text alone goes as one text, which every engine takes. */
function contentOf(parts: readonly Part[]): string | Json[] {
  return parts.every(({ type }) => type === 'input_text') ? wordsOf(parts) : parts.map(chatPart);
}

function outputOf(output: string | readonly Part[]): string | Json[] {
  return typeof output === 'string' ? output : contentOf(output);
}

function wordsOf(parts: readonly Part[]): string {
  return parts.map((part) => String(part['text'] ?? part['refusal'] ?? '')).join('');
}

function chatPart(part: Part): Json {
  switch (part.type) {
    case 'input_image':
      return { type: 'image_url', image_url: { url: part['image_url'], detail: part['detail'] } };
    case 'input_audio':
      return { type: 'input_audio', input_audio: part['input_audio'] };
    default:
      return { type: 'text', text: part['text'] };
  }
}
