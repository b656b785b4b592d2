import { describe, expect, it } from 'vitest';
import { A, compared, S, settled, world } from './shadow-world.ts';
import { VirtualGateway } from './virtual-gateway.ts';

/** What may act on something when it is answered: no second server is asked to. */

describe('what acts on something is not copied (trap 31)', () => {
  const tool = (type: string) => ({ tools: [{ type: 'function', function: { name: 'f' } }, { type }] });

  it.each([
    ['a search', tool('web_search')],
    ['code that is run', tool('code_interpreter')],
    ['a tool server', tool('mcp')],
    ['a tool of a kind nobody knows', tool('launch')],
    ['search options', { web_search_options: {} }],
    ['an answer that is kept there', { store: true }],
  ])('by %s', async (_, more) => {
    const { gateway } = world();
    gateway.chat(more);
    await settled(gateway);
    expect(gateway.served).toHaveLength(1);
    expect(await compared(gateway)).toEqual({ effects: 1 });
  });

  it.each([
    [
      'tools that the caller carries out',
      { tools: [{ type: 'function', function: { name: 'f' } }, { type: 'custom' }] },
    ],
    ['what is switched off', { store: false, tools: null, web_search_options: null }],
  ])('but %s is', async (_, more) => {
    const { gateway } = world();
    gateway.chat(more);
    await settled(gateway);
    expect(gateway.served).toHaveLength(2);
    expect(await compared(gateway)).toEqual({ alike: 1 });
  });

  it.each([
    ['route', { effects: true }, {}],
    ['backend', {}, { effects: true }],
  ])('as the %s is marked so', async (_, route, next) => {
    const { gateway } = world({ by: 'exact' }, route, next);
    gateway.chat();
    await settled(gateway);
    expect(gateway.served).toHaveLength(1);
    expect(await compared(gateway)).toEqual({ effects: 1 });
    const copies = await gateway.registry.getSingleMetric('armature_shadow_total')!.get();
    expect(copies.values.map(({ labels }) => labels['outcome'])).toEqual(['fenced']);
  });

  it('nor is what one server remembers, or one version is asked for', async () => {
    const triton = (origin: string) => ({ engine: 'triton', model: 'm', endpoints: [origin] });
    const gateway = new VirtualGateway({
      backends: { b1: triton(A), next: triton(S) },
      routes: {
        chat: {
          targets: [{ backend: 'b1' }],
          shadow: [{ backend: 'next', percent: 100, compare: { by: 'numeric' } }],
        },
      },
    });
    gateway.send('POST', '/v2/models/chat/infer', {
      inputs: [],
      parameters: { sequence_id: 1, sequence_start: true },
    });
    gateway.send('POST', '/v2/models/chat/versions/2/infer', { inputs: [] });
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(2);
    expect(await compared(gateway)).toEqual({ stateful: 1, version: 1 });
  });
});
