import { chatStream, type Engine, VirtualGateway } from './virtual-gateway.ts';

/** A route whose slow answers are asked for twice. */

export const [A, B, C] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.3:8000'];

export function world(more: { backend?: object; route?: object; hedge?: object; endpoints?: string[] } = {}) {
  return new VirtualGateway({
    backends: {
      b1: {
        engine: 'vllm',
        model: 'm',
        endpoints: (more.endpoints ?? [A, B]).map((origin) => `${origin}/v1`),
        timeouts: { firstByte: '500ms', idle: '300ms', total: '2s' },
        ...more.backend,
      },
    },
    routes: {
      chat: {
        targets: [{ backend: 'b1' }],
        deadline: '1s',
        hedge: { after: '100ms', budget: 1, ...more.hedge },
        ...more.route,
      },
    },
  });
}

/** The first request that comes to any endpoint is served by the first engine, and so on; the last serves the rest. */
export function inTurn(gateway: VirtualGateway, ...engines: Engine[]): void {
  let turn = 0;
  for (const origin of [A, B, C]) {
    gateway.engines.set(origin, (served) => engines[Math.min(turn++, engines.length - 1)]!(served));
  }
}

export const later = (engine: Engine, ms: number): Engine => {
  return (served) => void served.time.set(ms, () => !served.aborted && engine(served));
};
export const words = (...said: string[]) => chatStream(said, 10);
export const stepsOf = (gateway: VirtualGateway) =>
  gateway.records.at(-1)!.steps.filter(({ code, policy }) => code !== 'admitted' && policy === undefined);
export const codesOf = (gateway: VirtualGateway) => stepsOf(gateway).map(({ code }) => code);
export const codeOf = (text: string): string | undefined => JSON.parse(text).error?.code;

export async function hedgesOf(gateway: VirtualGateway): Promise<Record<string, number>> {
  const metric = await gateway.registry.getSingleMetric('armature_hedges_total')!.get();
  return Object.fromEntries(metric.values.map(({ labels, value }) => [labels['outcome'], value]));
}
