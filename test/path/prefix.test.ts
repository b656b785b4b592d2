import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { replay } from '../../src/events/replay.ts';
import { replayable } from '../../src/policies/register.ts';
import { chatAnswer, VirtualGateway } from './virtual-gateway.ts';

/** `affinity: prefix`: prompts with a long common beginning go to one endpoint, while it is not much busier than others. */

const ORIGINS = [1, 2, 3, 4].map((host) => `http://10.0.0.${host}:8000`);

interface Message {
  role: string;
  content: string;
}

function gatewayOf(count: number, seed = 1, afterMs = 1, more: object = {}) {
  const origins = ORIGINS.slice(0, count);
  const endpoints = origins.map((origin) => `${origin}/v1`);
  const gateway = new VirtualGateway(
    {
      backends: { b1: { engine: 'openai', model: 'm', endpoints, limits: { concurrency: 256 } } },
      routes: { chat: { targets: [{ backend: 'b1' }], affinity: 'prefix' } },
      ...more,
    },
    seed,
  );
  for (const origin of origins) gateway.engines.set(origin, chatAnswer('x', afterMs));
  return gateway;
}

const user = (content: string): Message => ({ role: 'user', content });
const longText = (name: string, words = 400) => `${name}: ${`lorem ${name} ipsum `.repeat(words)}`;

async function placeOf(gateway: VirtualGateway, messages: readonly Message[], more: object = {}) {
  const caller = gateway.chat({ messages, ...more });
  await gateway.time.advance(5);
  expect(caller.status).toBe(200);
  return gateway.records.at(-1)!.endpoint!;
}

describe('one after the other', () => {
  it('questions about one document go where the first one went, in every worker, and documents are spread', async () => {
    const [one, other] = [gatewayOf(4, 1), gatewayOf(4, 2)];
    const used = new Set<string>();
    for (let document = 0; document < 12; document++) {
      const text = longText(`document ${document}`);
      const places = new Set<string>();
      for (let question = 0; question < 6; question++) {
        places.add(await placeOf(one, [user(`${text}question ${question}`)]));
        places.add(await placeOf(other, [user(`${text}another question ${question}`)]));
      }
      expect(places.size).toBe(1);
      used.add([...places][0]!);
    }
    expect(used.size).toBe(4);
  });

  it('a conversation stays where it is while it grows, as a stream too, and whatever comes in between', async () => {
    const gateway = gatewayOf(3);
    const conversations = Array.from({ length: 8 }, (_, at) => [user(longText(`conversation ${at}`, 40))]);
    const places = conversations.map(() => new Set<string>());
    for (let turn = 0; turn < 12; turn++) {
      for (const [at, messages] of conversations.entries()) {
        places[at]!.add(await placeOf(gateway, messages));
        messages.push({ role: 'assistant', content: longText(`answer ${turn}`, 15 * (turn + 1)) });
        messages.push(user(`and then ${turn}?`));
      }
      await placeOf(gateway, [user('something short')]);
    }
    expect(places.map(({ size }) => size)).toEqual(places.map(() => 1));
    expect(new Set(places.flatMap((each) => [...each])).size).toBe(3);
  });

  it('a common system prompt does not put long documents that differ after it at one place', async () => {
    const gateway = gatewayOf(3);
    const system = { role: 'system', content: longText('rules', 60) };
    const places: string[] = [];
    for (let document = 0; document < 24; document++) {
      const text = longText(`document ${document}`, 200);
      const first = await placeOf(gateway, [system, user(`${text}first`)]);
      expect(await placeOf(gateway, [system, user(`${text}second`)])).toBe(first);
      places.push(first);
    }
    const counts = [...new Set(places)].map((place) => places.filter((each) => each === place).length);
    expect(counts).toHaveLength(3);
    expect(Math.max(...counts)).toBeLessThan(16);
  });

  it('short prompts and embeddings are spread', async () => {
    const gateway = gatewayOf(2);
    const short = new Set<string>();
    for (let i = 0; i < 20; i++) short.add(await placeOf(gateway, [user('Hi')]));
    expect(short.size).toBe(2);
    const seen = new Set<string>();
    for (let i = 0; i < 20; i++) {
      gateway.send('POST', '/v1/embeddings', { model: 'chat', input: longText('text') });
      await gateway.time.advance(5);
      seen.add(gateway.records.at(-1)!.endpoint!);
    }
    expect(seen.size).toBe(2);
  });

  it('other tools before the same messages are another beginning', async () => {
    const gateway = gatewayOf(4);
    const messages = [user(longText('one text'))];
    const places = new Set<string>();
    for (let i = 0; i < 12; i++) {
      const tools = [{ type: 'function', function: { name: `tool_${i}` } }];
      const place = await placeOf(gateway, messages, { tools });
      expect(await placeOf(gateway, messages, { tools })).toBe(place);
      places.add(place);
    }
    expect(places.size).toBeGreaterThan(1);
  });
});

describe('load', () => {
  it('past a gap others take a part, and afterwards the beginning is back at its own place', async () => {
    const gateway = gatewayOf(2, 1, 800);
    const text = longText('shared');
    const ask = () => gateway.chat({ messages: [user(`${text}${gateway.records.length}`)] });
    ask();
    await gateway.time.advance(1000);
    const home = gateway.records[0]!.endpoint!;
    const few = [ask(), ask(), ask()];
    await gateway.time.advance(1000);
    expect(few.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(gateway.records.map(({ endpoint }) => endpoint))).toEqual(new Set([home]));

    const before = gateway.records.length;
    for (let i = 0; i < 40; i++) ask();
    await gateway.time.advance(1000);
    const burst = gateway.records.slice(before);
    const away = burst.filter(({ endpoint }) => endpoint !== home).length;
    expect(burst).toHaveLength(40);
    expect(away).toBeGreaterThanOrEqual(12);
    expect(away).toBeLessThanOrEqual(28);
    const yielded = burst.filter(({ steps }) => steps.some(({ code }) => code === 'prefix-yielded'));
    expect(yielded.length).toBeGreaterThan(0);
    for (const record of burst) {
      const again = replay(JSON.parse(JSON.stringify(record)), replayable);
      expect(again.length).toBeGreaterThan(0);
      expect(again.every(({ same }) => same)).toBe(true);
    }

    for (let i = 0; i < 6; i++) {
      ask();
      await gateway.time.advance(1000);
      expect(gateway.records.at(-1)!.endpoint).toBe(home);
    }
  });

  it('prompts that are all new are spread evenly under load', async () => {
    const gateway = gatewayOf(4, 1, 500);
    for (let i = 0; i < 80; i++) gateway.chat({ messages: [user(longText(`prompt ${i}`))] });
    await gateway.time.advance(1000);
    const counts = ORIGINS.map(
      (origin) => gateway.records.filter(({ endpoint }) => endpoint === `${origin}/v1`).length,
    );
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(17);
    expect(Math.max(...counts)).toBeLessThanOrEqual(23);
  });

  it('what an endpoint holds that is away is placed elsewhere, and the rest stays', async () => {
    const gateway = gatewayOf(3);
    const texts = Array.from({ length: 12 }, (_, at) => longText(`text ${at}`));
    const before: string[] = [];
    for (const text of texts) before.push(await placeOf(gateway, [user(`${text}1`)]));
    const [gone] = before;
    gateway.world.read({ health: { [`b1|${gone}`]: 'unwell' } });
    for (const [at, text] of texts.entries()) {
      const place = await placeOf(gateway, [user(`${text}2`)]);
      if (before[at] === gone) expect(place).not.toBe(gone);
      else expect(place).toBe(before[at]);
    }
    gateway.world.read({ health: {} });
    for (const [at, text] of texts.entries()) {
      const place = await placeOf(gateway, [user(`${text}3`)]);
      if (before[at] !== gone) expect(place).toBe(before[at]);
    }
  });
});

it("a tenant's beginnings are its own", async () => {
  const tenants = { one: {}, two: {} };
  const text = longText('the same text');
  const placesBy = async (first: string | undefined) => {
    const places = new Map<string, string>();
    for (let i = 0; i < 10; i++) {
      const gateway = gatewayOf(4, i, 1, { tenants });
      const keys = ['one', 'two'].map((tenant) => ({ id: tenant, tenant, hash: hashOf(tenant) }));
      gateway.world.swap({ ...gateway.world.snapshot!, keys });
      const ask = async (tenant: string) => {
        gateway.chat({ messages: [user(`${text}${i}`)] }, { authorization: `Bearer ${tenant}` });
        await gateway.time.advance(5);
        const record = gateway.records.at(-1)!;
        expect(record.tenant).toBe(tenant);
        const { figures } = record.steps.find(({ code }) => code.startsWith('prefix-'))!;
        return figures['matched'];
      };
      if (first !== undefined) await ask(first);
      places.set(`${i}`, String(await ask('two')));
    }
    return [...places.values()];
  };
  expect(new Set(await placesBy('one'))).toEqual(new Set(['0']));
  expect(new Set(await placesBy('two'))).not.toContain('0');
});

function hashOf(key: string): string {
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}
