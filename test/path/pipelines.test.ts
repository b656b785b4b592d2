import { describe, expect, it } from 'vitest';
import {
  chatAnswer,
  chatStream,
  type Engine,
  NOTHING,
  never,
  status,
  VirtualGateway,
} from './virtual-gateway.ts';

const origins = ['http://r1:1', 'http://r2:1', 'http://r3:1', 'http://r4:1'];

/** A pipeline over the routes r1 to r4, each with an engine of its own. */
function config(stages: object, more: { deadline?: string; routes?: Record<string, object> } = {}) {
  return {
    backends: Object.fromEntries(
      origins.map((origin, i) => [
        `b${i + 1}`,
        { engine: 'openai', model: `m${i + 1}`, endpoints: [`${origin}/v1`] },
      ]),
    ),
    routes: Object.fromEntries(
      origins.map((_, i) => [
        `r${i + 1}`,
        { targets: [{ backend: `b${i + 1}` }], deadline: '30s', ...more.routes?.[`r${i + 1}`] },
      ]),
    ),
    pipelines: { search: { deadline: more.deadline ?? '2s', stages } },
  };
}

const user = (content: string) => [{ role: 'user', content }];

/** Says what it was asked, in capitals. */
const echo =
  (afterMs = 10): Engine =>
  (served) => {
    const { messages } = JSON.parse(String(served.request.body));
    chatAnswer(`<${messages.map((each: { content: string }) => each.content).join('|')}>`, afterMs)(served);
  };

function open(stages: object, engines: (Engine | undefined)[], more?: Parameters<typeof config>[1]) {
  const gateway = new VirtualGateway(config(stages, more));
  for (const [i, engine] of engines.entries()) if (engine) gateway.engines.set(origins[i]!, engine);
  return gateway;
}

const textOf = (caller: { text: string }) => JSON.parse(caller.text).choices[0].message.content;

describe('a pipeline', () => {
  it('runs its stages one after another, each with what the ones before said', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a {{ request.text }}' },
        b: { route: 'r2', after: ['a'], messages: user('b {{ a }} {{ stages.a.text }}') },
      },
      [echo(), echo()],
    );
    const caller = gateway.chat({ model: 'search', temperature: 0.5, seed: 7 });
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe('<b <a Hi> <a Hi>>');
    expect(caller.answerHeader('x-armature-route')).toBe('search');
    expect(caller.answerHeader('x-armature-backend')).toBe('b2');
    expect(caller.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(JSON.parse(String(gateway.served[0]!.request.body)).temperature).toBeUndefined();
    expect(JSON.parse(String(gateway.served[1]!.request.body))).toMatchObject({ temperature: 0.5, seed: 7 });
    expect(gateway.records).toHaveLength(1);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('streams its last stage', async () => {
    const gateway = open(
      { a: { route: 'r1', input: 'a' }, b: { route: 'r2', after: ['a'], input: '{{ a }}', stream: true } },
      [echo(), chatStream(['one ', 'two'])],
    );
    const caller = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(50);
    expect(caller.text).toContain('"one "');
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('cuts a stage at its budget, and goes on with what stands in', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a', budget: '100ms', onFailure: { use: 'general' } },
        b: { route: 'r2', after: ['a'], input: '{{ a }}' },
      },
      [never, echo()],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(99);
    expect(gateway.served).toHaveLength(1);
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe('<general>');
    expect(caller.answerHeader('x-armature-degraded')).toBe('a:use');
    expect(gateway.served[0]!.aborted).toBe(true);
    expect(gateway.records[0]).toMatchObject({ outcome: 'degraded', rung: 'a:use' });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('fails as its stage does, and lets the others go', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a' },
        b: { route: 'r2', input: 'b' },
        c: { route: 'r3', after: ['a', 'b'], input: '{{ a }}{{ b }}' },
      },
      [status(422), never, echo()],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(5);
    expect(caller.status).toBe(422);
    expect(JSON.parse(caller.text).error.message).toContain("Stage 'a'");
    expect(gateway.served[1]!.aborted).toBe(true);
    expect(gateway.served).toHaveLength(2);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
