import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { type Engine, NOTHING, type Served, type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

/**
 * Random callers, engines and changes of the configuration on routes that keep, share and join answers: everybody gets an
 * answer to its own question, of its own tenant, framed as asked, in time; nothing stays behind.
 */

const A = 'http://10.0.0.1:8000';
const TENANTS = ['a', 'b'];
const QUESTIONS = ['one', 'two', 'three'];

function config(model: string, pick: () => number) {
  const on = () => pick() < 0.7;
  const ladder = on() ? [{ cached: {} }, { answer: 'Later.' }] : [];
  return {
    gateway: { cacheBytesMax: on() ? '64MiB' : '4KiB' },
    backends: { b1: { engine: 'vllm', model, endpoints: [`${A}/v1`], limits: { concurrency: 3 } } },
    routes: {
      chat: {
        targets: [{ backend: 'b1' }],
        deadline: '400ms',
        ladder,
        singleFlight: on(),
        ...(on() ? { cache: {} } : {}),
      },
      embed: {
        targets: [{ backend: 'b1' }],
        deadline: '400ms',
        singleFlight: on(),
        ...(on() ? { cache: {} } : {}),
        ...(on() ? { batch: { max: 5 } } : {}),
      },
    },
    tenants: { a: {}, b: {} },
  };
}

/** Says back what it was asked, and a number that no other answer has; fails now and then, in every way. */
function engineOf(pick: () => number): Engine {
  let serial = 0;
  return (served) => {
    const { request, time } = served;
    const asked = JSON.parse(request.body!.toString()) as {
      stream?: boolean;
      messages?: { content: string }[];
      input?: string | string[];
      model: string;
    };
    const after = (ms: number, run: (sink: Served['sink']) => void) =>
      time.set(ms, () => {
        if (!served.aborted) run(served.sink);
      });
    const whole = (status: number, body: unknown, ms: number) => {
      after(ms, (sink) => {
        sink.onHead(status, { 'content-type': 'application/json' });
        sink.onData(Buffer.from(JSON.stringify(body)));
        if (!served.aborted) sink.onEnd();
      });
    };
    const chance = pick();
    const ms = 5 + pick() * 60;
    if (chance < 0.04) return;
    if (chance < 0.1) {
      whole(500, { error: 'x' }, ms);
      return;
    }
    if (chance < 0.14) {
      after(ms, (sink) => sink.onError({ kind: 'reset', message: '', unsent: false, stale: false }));
      return;
    }
    const number = `#${asked.model}-${++serial}`;
    if (asked.input !== undefined) {
      const list = Array.isArray(asked.input) ? asked.input : [asked.input];
      const data = list.map((input, index) => ({ index, embedding: `${input}${number}` }));
      if (list.includes('bad'))
        whole(400, { error: { message: 'bad', type: 't', param: null, code: null } }, ms);
      else whole(200, { data, usage: { prompt_tokens: list.length, total_tokens: list.length } }, ms);
      return;
    }
    const text = `${asked.messages![0]!.content}${number}`;
    const choice = { index: 0, finish_reason: 'stop' };
    if (!asked.stream) {
      whole(200, { choices: [{ ...choice, message: { role: 'assistant', content: text } }] }, ms);
      return;
    }
    const event = (value: unknown) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
    after(ms, (sink) => sink.onHead(200, { 'content-type': 'text/event-stream' }));
    for (const [at, word] of [...text].entries()) {
      after(ms + at * 3, (sink) => sink.onData(event({ choices: [{ index: 0, delta: { content: word } }] })));
    }
    const end = ms + text.length * 3;
    if (chance < 0.2) {
      after(end, (sink) => sink.onError({ kind: 'reset', message: '', unsent: false, stale: false }));
      return;
    }
    after(end, (sink) => {
      sink.onData(event({ choices: [{ ...choice, delta: {} }] }));
      sink.onData(Buffer.from('data: [DONE]\n\n'));
      if (!served.aborted) sink.onEnd();
    });
  };
}

interface Sent {
  caller: VirtualCaller;
  tenant: string;
  questions: string[];
  stream: boolean;
  left: boolean;
  sentAt: number;
}

function send(gateway: VirtualGateway, pick: () => number): Sent {
  const any = <Item>(items: readonly Item[]) => items[Math.floor(pick() * items.length)]!;
  const tenant = any(TENANTS);
  const headers: Record<string, string> = {
    authorization: `Bearer ${tenant}`,
    'x-armature-priority': any(['critical', 'standard', 'batch']),
    'x-armature-deadline-ms': any(['60', '200', '400']),
  };
  if (pick() < 0.1) headers['cache-control'] = any(['no-cache', 'no-store', 'max-age=0']);
  const sentAt = gateway.time.mono();
  if (pick() < 0.5) {
    const questions = Array.from({ length: 1 + Math.floor(pick() * 3) }, () => any([...QUESTIONS, 'bad']));
    const input = questions.length === 1 && pick() < 0.5 ? questions[0] : questions;
    const caller = gateway.send('POST', '/v1/embeddings', { model: 'embed', input }, headers);
    return { caller, tenant, questions, stream: false, left: false, sentAt };
  }
  const stream = pick() < 0.5;
  const question = any(QUESTIONS);
  const temperature = pick() < 0.8 ? { temperature: 0 } : {};
  const body = { messages: [{ role: 'user', content: question }], stream, ...temperature };
  const caller = gateway.chat(body, headers);
  return { caller, tenant, questions: [question], stream, left: false, sentAt };
}

/** What an answer says to each question; undefined where it is no answer, or not a whole one. */
function answersOf({ caller, stream, questions }: Sent): string[] | undefined {
  if (caller.status !== 200) return undefined;
  if (questions.length > 1 || caller.text.includes('"embedding"')) {
    const { data } = JSON.parse(caller.text) as { data: { index: number; embedding: string }[] };
    expect(data.map(({ index }) => index)).toEqual([...data.keys()]);
    return data.map(({ embedding }) => embedding);
  }
  if (!stream) {
    const { choices } = JSON.parse(caller.text) as { choices: { message: { content: string } }[] };
    return [choices[0]!.message.content];
  }
  expect(caller.answerHeader('content-type')).toContain('text/event-stream');
  if (!caller.text.endsWith('data: [DONE]\n\n')) {
    expect(caller.text).toContain('"error"');
    return undefined;
  }
  const events = caller.text.split('\n\n').filter((event) => event !== '' && !event.endsWith('[DONE]'));
  const words = events.map((event) => {
    const { choices } = JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] };
    return choices[0]?.delta.content ?? '';
  });
  return [words.join('')];
}

async function run(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = () => random.next();
  let model = 0;
  const gateway = new VirtualGateway(config('m0', pick), seed);
  const load = () => {
    gateway.load(config(`m${pick() < 0.5 ? model : ++model}`, pick));
    gateway.world.keys = { tenantOf: (key: string) => key } as never;
  };
  load();
  gateway.engines.set(A, engineOf(pick));
  const all: Sent[] = [];
  for (let turn = 0; turn < 60; turn++) {
    for (let burst = Math.floor(pick() * 4); burst >= 0; burst--) all.push(send(gateway, pick));
    await gateway.time.advance(Math.floor(pick() * 20));
    for (const one of all) {
      if (one.caller.ended || one.left || pick() > 0.02) continue;
      one.left = true;
      one.caller.leave();
    }
    for (const { caller } of all) {
      const was = caller.full;
      caller.full = !caller.ended && pick() < 0.05;
      if (was && !caller.full && !caller.ended) caller.onDrain?.();
    }
    if (pick() < 0.05) load();
  }
  for (const { caller } of all) {
    caller.full = false;
    caller.onDrain?.();
  }
  await gateway.time.advance(130_000);

  const tenantOf = new Map<string, string>();
  for (const one of all) {
    if (one.left) continue;
    expect(one.caller.ended).toBe(true);
    const answers = answersOf(one);
    if (!answers || answers.includes('Later.')) continue;
    expect(answers.map((answer) => answer.split('#')[0])).toEqual(one.questions);
    for (const answer of answers) {
      const serial = answer.split('#')[1]!;
      expect(tenantOf.get(serial) ?? one.tenant).toBe(one.tenant);
      tenantOf.set(serial, one.tenant);
    }
  }
  expect(gateway.taken).toEqual(NOTHING);
  expect(gateway.records).toHaveLength(all.length);
  for (const { outcome, steps } of gateway.records) {
    if (outcome === 'failed' || outcome === 'refused')
      expect(steps.some(({ what }) => what === 'answer')).toBe(true);
  }
}

describe('kept, shared and joined answers in random worlds', () => {
  it.each(Array.from({ length: 40 }, (_, i) => i + 1))('hold with seed %i', async (seed) => {
    await run(seed);
  });
});
