import { beforeEach, expect, test } from 'vitest';
import type { Fact } from '../events/contracts.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { ControlToGateway, GatewayToControl } from '../links/messages.ts';
import { type GatewayLink, Gateways } from './gateways.ts';

let time: VirtualTime;
let log: string[];
let store: (facts: Fact[]) => Promise<void>;
let gateways: Gateways;

beforeEach(() => {
  time = new VirtualTime();
  log = [];
  store = async () => {};
  gateways = new Gateways(time, {
    joined: ({ part, boot }) => log.push(`${part} ${boot} joined`),
    left: ({ part, boot }) => log.push(`${part} ${boot} left`),
    facts: (_boot, _sequence, facts) => store(facts),
    leases: (_peer, message) => log.push(message.type),
    quotas: (_peer, message) => log.push(message.type),
    wake: (backend, cause) => log.push(`${cause} wakes ${backend}`),
    parting: ({ part }) => log.push(`${part} parts`),
  });
});

function join(boot: string, worker = 0) {
  const sent: ControlToGateway[] = [];
  const link = {
    send: (message: ControlToGateway) => sent.push(message) > 0,
    onMessage: undefined as ((message: GatewayToControl) => void) | undefined,
    onClose: undefined as ((fault: Error | undefined) => void) | undefined,
  };
  gateways.accept(link as unknown as GatewayLink, {
    type: 'hello',
    role: 'gateway',
    part: `gateway-${worker}`,
    pid: 1,
    boot,
    worker,
    holdings: {},
  });
  return {
    sent,
    hear: (message: GatewayToControl) => link.onMessage?.(message),
    close: () => link.onClose?.(undefined),
  };
}

test('a batch is acknowledged once it is stored, and tried again while it cannot be', async () => {
  let full = true;
  store = async () => {
    log.push('store');
    if (full) throw new Error('full');
  };
  const { sent, hear, close } = join('a');
  hear({ type: 'facts', boot: 'a', sequence: 7, facts: [] });
  await time.advance(2500);
  expect(sent).toEqual([]);
  full = false;
  await time.advance(1000);
  expect(sent).toEqual([{ type: 'facts-stored', boot: 'a', sequence: 7 }]);
  full = true;
  hear({ type: 'facts', boot: 'a', sequence: 8, facts: [] });
  await time.advance(0);
  close();
  const tried = log.filter((it) => it === 'store').length;
  await time.advance(60_000);
  expect(log.filter((it) => it === 'store')).toHaveLength(tried);
  expect(time.pending).toBe(0);
});

test('who does not answer in time, or leaves, has no answer', async () => {
  const a = join('a');
  const [peer] = gateways.peers;
  const slow = gateways.ask(peer!, 'state', 1000);
  await time.advance(1000);
  expect(await slow).toBeUndefined();
  const asked = gateways.ask(peer!, 'metrics', 1000);
  a.hear({ type: 'reply', ask: 2, data: { it: 'is' } });
  expect(await asked).toEqual({ it: 'is' });
  const gone = gateways.ask(peer!, 'metrics', 1000);
  a.close();
  expect(await gone).toBeUndefined();
  expect(await gateways.ask(peer!, 'metrics', 1000)).toBeUndefined();
  expect(time.pending).toBe(0);
});

test('a second connection of one process takes the place of the first, whose end is no leaving', () => {
  const first = join('a');
  join('a');
  first.close();
  expect(log).toEqual(['gateway-0 a joined', 'gateway-0 a left', 'gateway-0 a joined']);
  expect(gateways.peers).toHaveLength(1);
});

test('it is known when the last worker has left, or that none did in time', async () => {
  const a = join('a', 0);
  const b = join('b', 1);
  let deserted = false;
  void gateways.deserted(5000).then(() => {
    deserted = true;
  });
  a.close();
  await time.advance(10);
  expect(deserted).toBe(false);
  b.close();
  await time.advance(10);
  expect(deserted).toBe(true);
  join('c');
  const waited = gateways.deserted(5000);
  await time.advance(5000);
  await waited;
  expect(time.pending).toBe(0);
});
