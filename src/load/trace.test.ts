import { expect, it } from 'vitest';
import { parseTrace } from './trace.ts';

it('reads JSON lines as Mooncake writes them', () => {
  const text =
    '{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n{"timestamp": 0, "input_length": 4, "output_length": 0}\n';
  expect(parseTrace(text)).toEqual([
    { atMs: 0, promptTokens: 4, outputTokens: 0 },
    { atMs: 3000, promptTokens: 6758, outputTokens: 500 },
  ]);
});

it('reads who asks for what, where the trace says it', () => {
  const csv =
    'TIMESTAMP,ContextTokens,GeneratedTokens,tenant,priority,stream,route\n0,1,2,web,batch,true,code\n1.5,3,4,,,0,\n';
  expect(parseTrace(csv)).toEqual([
    {
      atMs: 0,
      promptTokens: 1,
      outputTokens: 2,
      tenant: 'web',
      priority: 'batch',
      stream: true,
      route: 'code',
    },
    { atMs: 1500, promptTokens: 3, outputTokens: 4, stream: false },
  ]);
  expect(parseTrace('{"timestamp": 0, "input_length": 4, "output_length": 1, "session": "s1"}')).toEqual([
    { atMs: 0, promptTokens: 4, outputTokens: 1, session: 's1' },
  ]);
});

it.each([
  ['{"timestamp": 0, "input_length": 4}', 'line 1 is no row'],
  ['{"timestamp": 0,', 'line 1 is no row'],
  ['TIMESTAMP,ContextTokens,GeneratedTokens,priority\n0,1,2,urgent', 'line 2 is no row'],
  ['{}'.repeat(0), 'the first line must name'],
])('says what is wrong with %j', (text, message) => expect(parseTrace(text)).toContain(message));
