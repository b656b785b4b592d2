import { expect, it } from 'vitest';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { GatewayToControl, Observation } from '../../links/messages.ts';
import { Observations } from './observations.ts';

const seen: Observation = { route: 'chat', backend: 'b1', model: 'm', request: 'req_1', values: {} };

it('tells observations together, bounded, and says how many were lost while control was away', async () => {
  const time = new VirtualTime();
  const sent: GatewayToControl[] = [];
  let up = true;
  const observations = new Observations((message) => up && sent.push(message) > 0, time);
  for (let i = 0; i < 1200; i++) observations.push(seen);
  expect(observations.waiting).toBe(1000);
  await time.advance(1000);
  expect(sent).toEqual([
    { type: 'observations', observations: Array.from({ length: 1000 }, () => seen), lost: 200 },
  ]);
  expect(observations.waiting).toBe(0);
  up = false;
  for (let i = 0; i < 5; i++) observations.push(seen);
  await time.advance(1000);
  up = true;
  observations.push(seen);
  observations.flush();
  await time.advance(1000);
  expect(sent.slice(1)).toEqual([{ type: 'observations', observations: [seen], lost: 5 }]);
});
