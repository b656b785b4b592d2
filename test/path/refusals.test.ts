import { expect, it } from 'vitest';
import type { Fact } from '../../src/events/contracts.ts';
import { Outbox } from '../../src/gateway/facts/outbox.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { GatewayToControl } from '../../src/links/messages.ts';
import { never, VirtualGateway } from './virtual-gateway.ts';

const CONFIG = {
  backends: {
    b: { engine: 'openai', model: 'm', endpoints: ['http://a/v1'], limits: { concurrency: 1 } },
  },
  routes: { chat: { targets: [{ backend: 'b' }], deadline: '600s', queue: { max: 1 } } },
};

/** Takes what leaves the worker, and says at once that it is stored. */
function outboxOf(stored: Fact[]) {
  return (time: VirtualGateway['time']): Outbox => {
    const outbox = new Outbox({
      boot: 'b',
      send(batch: Extract<GatewayToControl, { type: 'facts' }>) {
        stored.push(...batch.facts);
        time.set(0, () => outbox.stored(batch.sequence));
        return true;
      },
      soon: (run) => time.set(0, run),
      clock: time,
      timers: time,
      random: seededRandom(1),
    });
    return outbox;
  };
}

it('counts every one of 20,000 refusals a second, and keeps the ledger within its rate', async () => {
  const stored: Fact[] = [];
  const gateway = new VirtualGateway(CONFIG, 1, outboxOf(stored));
  gateway.engines.set('http://a', never);
  gateway.chat();
  gateway.chat();
  const SECONDS = 3;
  const PER_SECOND = 20_000;
  const STEPS = 20;
  const statuses = new Map<number | undefined, number>();
  for (let step = 0; step < SECONDS * STEPS; step++) {
    for (let i = 0; i < PER_SECOND / STEPS; i++) {
      const { status } = gateway.chat();
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    await gateway.time.advance(1000 / STEPS);
  }
  await gateway.time.advance(2000);
  expect([...statuses]).toEqual([[503, SECONDS * PER_SECOND]]);
  const records = stored.filter((fact) => fact.kind === 'request').length;
  const counted = stored.reduce((sum, fact) => sum + (fact.kind === 'group' ? fact.count : 0), 0);
  expect(records + counted).toBe(SECONDS * PER_SECOND);
  // 100 records a second, and one example of each kind.
  expect(records).toBeLessThanOrEqual((SECONDS + 1) * 101);
  const metrics = await gateway.registry.metrics();
  expect(metrics).toMatch(/armature_requests_total\{route="chat",tenant="[^"]*",outcome="refused"\} 60000/);
  expect(metrics).toMatch(/armature_shed_total\{route="chat",reason="queue-full"\} 60000/);
});
