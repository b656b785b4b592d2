import { expect, test } from 'vitest';
import { eventMaker } from '../../events/event-maker.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { memoryStore } from '../../store/memory/index.ts';
import { cameOf } from './alarm-trail.ts';

test('a version that answers an alarm follows from the retraining that was asked for', async () => {
  const { ledger } = memoryStore();
  const make = eventMaker(new VirtualTime(1_700_000_000_000), seededRandom(1));
  const told = async (type: string, ...causes: string[]) => {
    const event = make({ type, subject: 'drift:chat|llama|confidence', causes });
    await ledger.append([event]);
    return event.id;
  };
  const alarm = await told('drift-detected');
  expect(await cameOf(alarm, ledger)).toBe(alarm);
  const confirmed = await told('drift-confirmed', alarm);
  expect(await cameOf(alarm, ledger)).toBe(confirmed);
  const asked = await told('retraining-asked', confirmed);
  const next = await told('drift-detected');
  await told('drift-passed', next);
  expect(await Promise.all([alarm, confirmed, next].map((id) => cameOf(id, ledger)))).toEqual([
    asked,
    asked,
    next,
  ]);
  expect(await cameOf('ev_gone', ledger)).toBe('ev_gone');
});
