import { beforeEach, expect, test } from 'vitest';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { backendOfPart, HostStandings } from './host-standings.ts';

let time: VirtualTime;
let standings: HostStandings;

beforeEach(() => {
  time = new VirtualTime();
  standings = new HostStandings(time);
  standings.keep(['near']);
});

const left = (restartInMs: number | null, agoMs = 0) =>
  ({
    type: 'part-left',
    part: 'host-near',
    pid: 7,
    exitCode: 1,
    signal: null,
    restartInMs,
    wallMs: time.wall() - agoMs,
  }) as const;

test('a start counts from the process, whoever tells of it', async () => {
  await time.advance(500);
  standings.loading('near', 200);
  await time.advance(100);
  expect(standings.reading('near', 'starting')).toEqual({ state: 'starting', startingMs: 300 });
  const started = { type: 'part-started', part: 'host-near', pid: 8, adopted: false } as const;
  expect(standings.heard('near', { ...started, wallMs: time.wall() - 50 }, 'ev_started')).toBe(true);
  expect(standings.reading('near', 'starting')).toEqual({ state: 'starting', startingMs: 50 });
});

test('one that died starts when the supervisor says, and for that reason', () => {
  expect(standings.heard('near', left(8000, 1000), 'ev_died')).toBe(true);
  expect(standings.reading('near', 'starting')).toEqual({
    state: 'failing',
    startingMs: -7000,
    cause: 'ev_died',
  });
});

test('one that is started again soon is starting, and one that is up too', () => {
  standings.heard('near', left(1000), 'ev_died');
  expect(standings.reading('near', 'starting').state).toBe('starting');
  standings.heard('near', left(16_000), 'ev_died');
  standings.loading('near', 5);
  expect(standings.reading('near', 'starting').state).toBe('starting');
});

test('one that another supervisor started is no new start, and what is no host of ours is not heard', () => {
  standings.loading('near', 1000);
  const adopted = {
    type: 'part-started',
    part: 'host-near',
    pid: 7,
    adopted: true,
    wallMs: time.wall(),
  } as const;
  expect(standings.heard('near', adopted, 'ev_adopted')).toBe(false);
  expect(standings.heard('far', left(0), 'ev_left')).toBe(false);
  expect(standings.reading('near', 'starting').startingMs).toBe(1000);
});

test('what starts take is the mean of the last five', () => {
  expect(standings.reading('near', 'running')).toEqual({ state: 'running' });
  standings.learn('near', [9000, 1000, 1000, 1000, 1000]);
  expect(standings.reading('near', 'idle')).toEqual({ state: 'idle', expectedMs: 2600 });
  standings.learn('near', [1500]);
  expect(standings.reading('near', 'idle').expectedMs).toBe(1100);
});

test('it serves since it came to, and starts again when it goes', async () => {
  await time.advance(100);
  standings.serves('near', true, 'ev_ready');
  await time.advance(100);
  standings.serves('near', true, 'ev_ready');
  expect([standings.servingAt('near'), standings.cause('near')]).toEqual([time.mono() - 100, 'ev_ready']);
  standings.serves('near', false, 'ev_gone');
  await time.advance(40);
  expect(standings.servingAt('near')).toBeUndefined();
  expect(standings.reading('near', 'starting')).toEqual({
    state: 'starting',
    startingMs: 40,
    cause: 'ev_gone',
  });
});

test('a backend that is no more is forgotten', () => {
  standings.learn('near', [1000]);
  standings.keep([]);
  standings.keep(['near']);
  expect(standings.reading('near', 'running')).toEqual({ state: 'running' });
});

test('a part is the host of one backend', () => {
  expect(backendOfPart('host-near', ['far', 'near'])).toBe('near');
  expect(backendOfPart('gateway-0', ['far', 'near'])).toBeUndefined();
});
