import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { badRequest, tooBusy } from '../../src/hosts/fault.ts';
import {
  type Exchange,
  type Handler,
  jsonObject,
  type Listener,
  openListener,
} from '../../src/hosts/listener.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { eventually, within } from '../upstream/waiting.ts';

/** What all model hosts have in common: see src/hosts/listener.ts. */

let listener: Listener;
let warned: string[];
/** Exchanges of `/slow`, which are answered by hand. */
let slow: Exchange[];

const handlers: Record<string, Handler> = {
  'POST /v1/echo': (exchange) => exchange.answer(200, jsonObject(exchange.body)),
  'POST /v1/wrong': () => {
    throw badRequest('that is wrong', 'that');
  },
  'POST /v2/wrong': () => {
    throw badRequest('that is wrong');
  },
  'POST /v1/busy': () => {
    throw tooBusy(3);
  },
  'POST /v1/broken': () => {
    throw new Error('a secret of the inside');
  },
  'POST /v1/breaks': async (exchange) => {
    exchange.openEvents();
    await exchange.sendEvent({ piece: 1 });
    throw new Error('a secret of the inside');
  },
  'POST /v1/slow': (exchange) => void slow.push(exchange),
};

beforeEach(async () => {
  warned = [];
  slow = [];
  const route = (method: string, path: string) => handlers[`${method} ${path}`];
  listener = await openListener({ route }, systemTimers, (text) => warned.push(text));
});
afterEach(() => listener.close(0));

const post = (path: string, body = '{}', signal?: AbortSignal) =>
  fetch(listener.origin + path, { method: 'POST', body, ...(signal && { signal }) });

describe('a host', () => {
  it('tells what is wrong in the words of the protocol', async () => {
    const wrong = await post('/v1/wrong');
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toEqual({
      error: { message: 'that is wrong', type: 'invalid_request_error', param: 'that', code: null },
    });
    expect(await (await post('/v2/wrong')).json()).toEqual({ error: 'that is wrong' });
    expect((await post('/v1/none')).status).toBe(404);
    const busy = await post('/v1/busy');
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([503, '1']);
    expect(warned).toEqual([]);
  });

  it('tells a fault of its own to whoever keeps it running, and not to the caller', async () => {
    const broken = await post('/v1/broken');
    expect(broken.status).toBe(500);
    expect(await broken.text()).not.toContain('secret');
    const text = await (await post('/v1/breaks')).text();
    expect(text).toContain('data: {"piece":1}');
    expect(text).toContain('data: {"error":');
    expect(text).not.toContain('[DONE]');
    expect(text).not.toContain('secret');
    expect(warned).toEqual(['POST /v1/broken failed', 'POST /v1/breaks failed']);
  });

  it.each(['', 'no JSON', '[]', '"text"', 'null'])('refuses %j as a body', async (body) => {
    expect((await post('/v1/echo', body)).status).toBe(400);
  });

  it('knows when a caller has left', async () => {
    const leaving = new AbortController();
    const asked = post('/v1/slow', '{}', leaving.signal).catch(() => undefined);
    const exchange = await eventually('it has come', () => slow[0]);
    expect([exchange.gone.aborted, listener.running]).toEqual([false, 1]);
    leaving.abort();
    await asked;
    await eventually('it is seen', () => exchange.gone.aborted);
    expect(listener.running).toBe(0);
  });

  it('lets running requests finish when it closes, and keeps no idle connection open after them', async () => {
    const asked = post('/v1/slow');
    const exchange = await eventually('it has come', () => slow[0]);
    const closed = listener.close(60_000);
    await expect(post('/v1/echo')).rejects.toThrow();
    exchange.answer(200, { finished: true });
    expect(await (await asked).json()).toEqual({ finished: true });
    await within('it closes', 2000, closed);
  });

  it('ends what has not finished in time', async () => {
    const asked = post('/v1/slow').catch((error: Error) => error);
    const exchange = await eventually('it has come', () => slow[0]);
    await within('it closes', 2000, listener.close(20));
    expect(exchange.gone.aborted).toBe(true);
    expect(await asked).toBeInstanceOf(Error);
  });
});
