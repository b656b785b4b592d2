import { describe, expect, it } from 'vitest';
import { chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chunk, usageChunk } from '../upstream/scripts.ts';
import { parseSse, type SseEvent } from '../upstream/sse.ts';

/** Everything that a stream of an engine may hold: text beyond ASCII, escapes, fields, comments, tool calls, usage. */
function payload(eol: string): Buffer {
  const data = (value: unknown) =>
    `data: ${typeof value === 'string' ? value : JSON.stringify(value)}${eol}${eol}`;
  const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } };
  return Buffer.from(
    [
      `: ping${eol}${eol}`,
      data(chunk({ role: 'assistant', content: '' })),
      data(chunk({ content: 'naïve ☃ 😀👩‍🚀' })),
      `id: 7${eol}${data(chunk({ content: ' "data: [DONE]"\n\n\r\n ' }))}`,
      `data:${JSON.stringify(chunk({ tool_calls: [call] }))}${eol}${eol}`,
      data(chunk({}, 'stop')),
      data(usageChunk()),
      data('[DONE]'),
    ].join(''),
  );
}

/** Which split a request asks for: the position in its message. */
const positionOf = (body: { messages: { content: string }[] }) => Number(body.messages[0]!.content);

function splitAt(bytes: Buffer): Script {
  return async (x) => {
    const position = positionOf(x.request.json());
    await x.sseHead();
    await x.body(bytes.subarray(0, position));
    await x.pause(1); // so that the two pieces are read apart
    await x.body(bytes.subarray(position));
    await x.end();
  };
}

const byteByByte = (bytes: Buffer): Script => {
  return async (x) => {
    await x.sseHead();
    for (const byte of bytes) await x.body(Buffer.of(byte));
    await x.end();
  };
};

/** What a caller has to see: the engine's events, whichever way their bytes were cut. */
const datasOf = (events: readonly SseEvent[]) => events.map((event) => event.data);

describe.each([
  ['LF', '\n'],
  ['CRLF', '\r\n'],
])('a stream with %s, split by its engine', (_, eol) => {
  const bytes = payload(eol);
  const body = chatBody({ stream: true, stream_options: { include_usage: true } });
  const request = (position: number) => ({
    path: '/v1/chat/completions',
    body: { ...body, messages: [{ role: 'user', content: String(position) }] },
  });

  it('arrives with the same events, wherever it is split', async () => {
    await using engine = await startEngine(splitAt(bytes));
    await using armature = await startArmature(plainConfig(engine));
    const wanted = datasOf(parseSse(bytes));
    expect(wanted).toHaveLength(7);
    const wrong: { position: number; got: string }[] = [];
    const positions = Array.from(bytes.keys());
    const askAll = async () => {
      using client = await RawClient.open(armature.gatewayPort);
      for (let position = positions.pop(); position !== undefined; position = positions.pop()) {
        const answer = await client.request(request(position)).whole();
        const same = JSON.stringify(datasOf(answer.events)) === JSON.stringify(wanted);
        if (!same || !answer.complete) wrong.push({ position, got: `${answer}` });
      }
    };
    await Promise.all(Array.from({ length: 8 }, askAll));
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(engine.posts).toHaveLength(bytes.length);
  });

  it('arrives with the same events when each byte comes alone', async () => {
    await using engine = await startEngine(byteByByte(bytes));
    await using armature = await startArmature(plainConfig(engine));
    const answer = await armature.ask(request(0));
    expect(datasOf(answer.events)).toEqual(datasOf(parseSse(bytes)));
    expect(answer.complete).toBe(true);
  });
});
