import type { Script } from '../upstream/engine.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { chat, chatAnswer, chunk } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';

/** What an engine was sent, and engines that tell it, for the tests of what is kept. */

export interface Said {
  role: string;
  content: string;
}

/** The messages of a chat, without those of the system. */
export function talk(x: { json(): Json }): Said[] {
  const { messages } = x.json();
  return messages
    .filter(({ role }: Said) => role !== 'system')
    .map(({ role, content }: Said) => ({ role, content }));
}

/** Answers `answer:` and what was said last, in pieces where a stream is asked for. */
export function answersLast(afterMs = 0): Script {
  return async (x: Exchange) => {
    if (afterMs > 0) await x.pause(afterMs);
    const { content } = talk(x.request).at(-1)!;
    await chat(['answer:', content])(x);
  };
}

const CALLS = [
  { id: 'call_A', city: 'Paris' },
  { id: 'call_B', city: 'Köln "am" Rhein' },
];

/** Asks for two tools, tells their words interleaved, and then what they said. */
export const callsTools: Script = async (x) => {
  const messages: { role: string; content: string }[] = x.request.json().messages;
  const outputs = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  if (outputs.length > 0) return chat([`said:${outputs.join('+')}`])(x);
  const calls = CALLS.map(({ id, city }) => ({
    id,
    type: 'function',
    function: { name: 'weather', arguments: JSON.stringify({ city }) },
  }));
  if (!x.request.stream) {
    const message = { role: 'assistant', content: null, tool_calls: calls };
    await x.json(chatAnswer('', { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }));
    return;
  }
  await x.sseHead();
  await x.event(chunk({ role: 'assistant', content: null }));
  for (const [index, { id, function: made }] of calls.entries()) {
    await x.event(
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name: made.name, arguments: '' } }] }),
    );
  }
  for (let at = 0; at < 40; at += 5) {
    for (const [index, { function: made }] of calls.entries()) {
      const piece = made.arguments.slice(at, at + 5);
      if (piece !== '') await x.event(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  }
  await x.event(chunk({}, 'tool_calls'));
  await x.event('[DONE]');
  await x.end();
};
