import { describe, expect, it } from 'vitest';
import { readTranscript, type Transcript } from './transcript.ts';
import { turnsOf } from './turns.ts';

const user = (content: string, more = {}) => ({ role: 'user', content, ...more });
const says = (content: string) => ({ role: 'assistant', content });
const calls = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'done' });
const system = { role: 'system', content: 'Be short.' };

function read(...messages: object[]): Transcript {
  return readTranscript(Buffer.from(JSON.stringify({ model: 'm', messages })))!;
}

const orderOf = (messages: object[], keep = { first: 0, last: 1 }) =>
  turnsOf(read(...messages).messages, keep).order;

describe('turns', () => {
  it('go oldest first; instructions and the last one stay', () => {
    const chat = [system, user('a'), says('b'), user('c'), says('d'), user('e')];
    expect(turnsOf(read(...chat).messages, { first: 0, last: 1 })).toMatchObject({
      system: [0],
      order: [
        [1, 2],
        [3, 4],
      ],
      middle: 2,
      count: 3,
    });
  });

  it('go from the middle, then from the end, then from the beginning', () => {
    const chat = ['a', 'b', 'c', 'd', 'e', 'f'].flatMap((text) => [user(text), says(text)]);
    expect(orderOf(chat, { first: 2, last: 2 })).toEqual([
      [4, 5],
      [6, 7],
      [8, 9],
      [2, 3],
      [0, 1],
    ]);
  });

  it('are kept whole where anything of them is pinned', () => {
    const chat = [user('a', { armature: { pinned: true } }), says('b'), user('c'), says('d'), user('e')];
    expect(orderOf(chat)).toEqual([[2, 3]]);
  });

  it('have their calls with their results, and are one where those lie apart', () => {
    const apart = [user('a'), calls('1'), user('b'), result('1'), says('c'), user('d')];
    expect(orderOf(apart)).toEqual([[0, 1, 2, 3, 4]]);
    const open = [user('a'), calls('1'), user('b'), result('1')];
    expect(orderOf(open)).toEqual([]);
  });

  it('of the last turn rounds of tools may go, the last of them not', () => {
    const chat = [
      user('a'),
      calls('1'),
      result('1'),
      calls('2', '3'),
      result('2'),
      result('3'),
      calls('4'),
      result('4'),
    ];
    expect(orderOf(chat)).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
    const broken = [user('a'), calls('1'), calls('2'), result('2'), calls('4'), result('4')];
    expect(orderOf(broken)).toEqual([[2, 3]]);
  });
});
