import { describe, expect, it } from 'vitest';
import { bodyOf, readTranscript } from './transcript.ts';

const none = new Map();
const read = (text: string) => readTranscript(Buffer.from(text))!;

describe('a transcript', () => {
  it('keeps the bytes of what is kept', () => {
    const body =
      '{ "model":"m", "messages" : [ {"role":"user","content":"\\u00e9", "x": 1.0} ,\n {"content":"b","role":"assistant"},{"role":"user","content":"c"} ], "seed": 1e3}';
    const transcript = read(body);
    expect(bodyOf(transcript, [0, 1, 2], none).toString()).toBe(body);
    expect(bodyOf(transcript, [0, 2], none).toString()).toBe(
      '{ "model":"m", "messages" : [{"role":"user","content":"\\u00e9", "x": 1.0},{"role":"user","content":"c"}], "seed": 1e3}',
    );
  });

  it('says nothing upstream of what is said to Armature', () => {
    const transcript = read(
      '{"messages":[{"role":"user","armature":{"pinned":true},"content":"\\"armature\\""},{"role":"user","content":"c"}]}',
    );
    expect(transcript.messages.map(({ pinned }) => pinned)).toEqual([true, false]);
    expect(bodyOf(transcript, [0, 1], none).toString()).toBe(
      '{"messages":[{"role":"user","content":"\\"armature\\""},{"role":"user","content":"c"}]}',
    );
  });

  it('changes a text and leaves the rest of its message', () => {
    const transcript = read('{"messages":[{"n":1.50,"role":"user","content":"abc"}]}');
    const changes = new Map([[0, { before: 'x ', text: { part: 0, text: 'a' } }]]);
    expect(bodyOf(transcript, [0], changes).toString()).toBe(
      '{"messages":[{"n":1.50,"role":"user","content":"x a"}]}',
    );
  });

  it('puts a text before parts, and changes the one that is meant', () => {
    const parts = [
      { type: 'image_url', image_url: { url: 'u' } },
      { type: 'text', text: 'abc' },
    ];
    const transcript = read(JSON.stringify({ messages: [{ role: 'user', content: parts }] }));
    const changes = new Map([[0, { before: 'x', text: { part: 1, text: 'a' } }]]);
    const made = JSON.parse(bodyOf(transcript, [0], changes).toString());
    expect(made.messages[0].content).toEqual([
      { type: 'text', text: 'x' },
      parts[0],
      { type: 'text', text: 'a' },
    ]);
  });

  it.each([
    '',
    '[]',
    '{}',
    '{"messages":[]}',
    '{"messages":{}}',
    '{"messages":[1]}',
    '{"messages":[null]}',
    '{"messages":[{"content":"a"}]}',
    '{"messages":[{"role":"user","content":tru}]}',
    '{"messages":[{"role":"user"}],"messages":[{"role":"user"},{"role":"user"}],"x":}',
  ])('is none of %s', (text) => {
    expect(readTranscript(Buffer.from(text))).toBeUndefined();
  });

  it('of a list that is given twice is the last one, as it is for engines', () => {
    const text = '{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}';
    expect(read(text).messages.map(({ value }) => value.content)).toEqual(['b']);
  });
});
