import { beforeEach, expect, test } from 'vitest';
import type { HostToControl } from '../links/messages.ts';
import { type HostLink, Hosts, type RememberedHost } from './hosts.ts';

let changed: string[];
let loading: number[];
beforeEach(() => {
  changed = [];
  loading = [];
});

function hosts(remembered: RememberedHost[] = []): Hosts {
  return new Hosts(remembered, {
    onChange: (backend, tookMs) => changed.push(tookMs === undefined ? backend : `${backend} in ${tookMs}`),
    onLoading: (_backend, upMs) => loading.push(upMs),
  });
}

function hello(address: string, pid = 1, more: Partial<HostToControl> = {}): HostToControl {
  return {
    type: 'hello',
    role: 'host',
    part: 'host-near',
    pid,
    boot: `b${pid}`,
    backend: 'near',
    address,
    note: 'loading',
    upMs: 40,
    ...more,
  };
}

function link(): HostLink {
  return { onMessage: undefined, onClose: undefined } as unknown as HostLink;
}

test('an address counts from when it is told until its host leaves', () => {
  const all = hosts();
  const near = link();
  all.accept(near, hello(''));
  expect([all.addresses('near'), changed, all.peers[0]?.note]).toEqual([[], [], 'loading']);
  near.onMessage?.(hello('http://near/v1'));
  near.onMessage?.(hello('http://near/v1'));
  expect([all.addresses('near'), changed]).toEqual([['http://near/v1'], ['near']]);
  near.onClose?.(undefined);
  expect([all.addresses('near'), changed]).toEqual([[], ['near', 'near']]);
});

test('a host that loads and leaves changes nothing', () => {
  const all = hosts();
  const near = link();
  all.accept(near, hello(''));
  near.onClose?.(undefined);
  expect(changed).toEqual([]);
});

test('a remembered host is used before it has connected, and no longer when it does not', () => {
  const known = { backend: 'near', pid: 1, address: 'http://near/v1' };
  const back = hosts([known]);
  expect(back.addresses('near')).toEqual(['http://near/v1']);
  back.accept(link(), hello('http://near/v1'));
  back.forget();
  expect([back.addresses('near'), changed]).toEqual([['http://near/v1'], []]);

  const gone = hosts([known]);
  gone.forget();
  expect([gone.addresses('near'), changed]).toEqual([[], ['near']]);
});

test('a remembered host that comes back at another address is reached there alone', () => {
  const all = hosts([{ backend: 'near', pid: 1, address: 'http://old/v1' }]);
  all.accept(link(), hello('http://new/v1'));
  expect([all.addresses('near'), changed]).toEqual([['http://new/v1'], ['near']]);
});

test('a host that loads says for how long it has been up, once, and how long its start took when it serves', () => {
  const all = hosts();
  const near = link();
  all.accept(near, hello(''));
  near.onMessage?.(hello('', 1, { note: 'half', upMs: 400 }));
  near.onMessage?.(hello('http://near/v1', 1, { upMs: 900, tookMs: 800 }));
  expect([loading, changed]).toEqual([[40], ['near in 800']]);
  near.onMessage?.(hello('', 1, { leaving: true }));
  expect([loading, changed]).toEqual([[40], ['near in 800', 'near']]);
});

test('a host that fetches its files says when it begins to, and when they are here', () => {
  const all = hosts();
  const near = link();
  all.accept(near, hello('', 1, { fetching: true }));
  near.onMessage?.(hello('', 1, { fetching: true, note: 'half', upMs: 9000 }));
  expect([all.peers[0]?.fetching, loading]).toEqual([true, [40]]);
  near.onMessage?.(hello('', 1, { upMs: 60 }));
  expect([all.peers[0]?.fetching, loading, changed]).toEqual([false, [40, 60], []]);
});
