import { expect } from 'vitest';
import { chatAnswer, type Engine, NOTHING, VirtualGateway } from './virtual-gateway.ts';

/** A route whose requests are answered at A and copied to S, and a model at J that can be asked about the answers. */

export const [A, S, J] = ['http://10.0.0.1:8000', 'http://10.0.0.9:8000', 'http://10.0.0.7:8000'];

export type Compare = Record<string, unknown>;

export function config(compare: Compare | undefined, route: object = {}, next: object = {}): object {
  const backend = (origin: string, model: string) => ({
    engine: 'vllm',
    model,
    endpoints: [`${origin}/v1`],
    timeouts: { firstByte: '200ms', idle: '100ms', total: '1s' },
  });
  return {
    backends: { b1: backend(A, 'm'), next: { ...backend(S, 'next-model'), ...next }, judge: backend(J, 'j') },
    routes: {
      chat: {
        targets: [{ backend: 'b1' }],
        shadow: [{ backend: 'next', percent: 100, ...(compare && { compare }) }],
        deadline: '2s',
        ...route,
      },
      judge: { targets: [{ backend: 'judge' }] },
    },
  };
}

export function world(compare: Compare = { by: 'exact' }, route?: object, next?: object) {
  const gateway = new VirtualGateway(config(compare, route, next));
  const engines = (caller: Engine, copy: Engine) => {
    gateway.engines.set(A, caller);
    gateway.engines.set(S, copy);
  };
  engines(chatAnswer('the same'), chatAnswer('the same'));
  return { gateway, engines };
}

export async function compared(gateway: VirtualGateway): Promise<Record<string, number>> {
  const metric = await gateway.registry.getSingleMetric('armature_shadow_compared_total')!.get();
  return Object.fromEntries(metric.values.map(({ labels, value }) => [labels['outcome'], value]));
}

export async function settled(gateway: VirtualGateway): Promise<void> {
  await gateway.time.advance(70_000); // what was compared is told once a minute
  expect(gateway.taken).toEqual(NOTHING);
  expect(gateway.time.pending).toBe(0);
}
