import { createHash } from 'node:crypto';
import { type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

/** A gateway with three tenants, and what is looked up of what it did. */

export const [A, B, C] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.3:8000'];
export const TENANTS = ['flood', 'calm', 'other'] as const;

export function tenantsWorld(
  more: { places?: number; endpoints?: string[]; route?: object; backends?: object } = {},
) {
  const { places = 1, endpoints = [A], route = {}, backends = {} } = more;
  const hash = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`;
  const gateway = new VirtualGateway({
    backends: {
      b1: {
        engine: 'openai',
        model: 'm',
        endpoints: endpoints.map((origin) => `${origin}/v1`),
        limits: { concurrency: places, adaptive: 'off' },
      },
      ...backends,
    },
    routes: { chat: { targets: [{ backend: 'b1' }], ...route } },
    tenants: Object.fromEntries(
      TENANTS.map((name) => [name, { priority: 'critical', keys: [{ hash: hash(name) }] }]),
    ),
  });
  const ask = (tenant: string, priority = 'standard', more: object = {}, deadlineMs?: number) =>
    gateway.chat(more, {
      authorization: `Bearer ${tenant}`,
      'x-armature-priority': priority,
      ...(deadlineMs === undefined ? {} : { 'x-armature-deadline-ms': String(deadlineMs) }),
    });
  return { gateway, ask };
}

export function stepsOf(gateway: VirtualGateway, caller: VirtualCaller) {
  const id = caller.answerHeader('x-armature-id');
  return gateway.records.find((record) => record.id === id)!.steps;
}

export const codesOf = (gateway: VirtualGateway, caller: VirtualCaller) =>
  stepsOf(gateway, caller).map(({ code }) => code);

export async function shedBy(gateway: VirtualGateway): Promise<Record<string, number>> {
  const metric = await gateway.registry.getSingleMetric('armature_shed_total')!.get();
  return Object.fromEntries(metric.values.map(({ labels, value }) => [labels['reason'], value]));
}
