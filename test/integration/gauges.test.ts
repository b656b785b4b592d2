import { describe, expect, it } from 'vitest';
import { httpPages } from '../../src/control/scraping/http-page.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { type Armature, backendOf, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { answerByPath, answerProbes, chatAnswer, never } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';
import { eventually, pause } from '../upstream/waiting.ts';

/** What engines tell of their own load: how it is read, and what is made of it. */

const HEADERS = [['Content-Type', 'text/plain; version=0.0.4']] as const;

/** Answers `/metrics` with what `text` says then; undefined: not at all. */
const telling =
  (text: () => string | undefined, status = 200): Script =>
  async (x) => {
    if (!x.request.path.endsWith('/metrics')) return answerProbes(x);
    const page = text();
    if (page === undefined) return never(x);
    await x.whole(Buffer.from(page), status, HEADERS);
  };

const vllm = (waiting: number, running: number, more = '') => `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="engine-model"} ${running}.0
vllm:num_requests_waiting{engine="0",model_name="engine-model"} ${waiting}.0
${more}`;

const scrapes = (engine: ScriptedEngine) =>
  engine.requests.filter(({ path }) => path.endsWith('/metrics')).length;

async function engineOf(armature: Armature, at: number): Promise<Json | undefined> {
  const { backends } = (await armature.admin('/api/v1/status')).json();
  return backends[0].endpoints[at]?.engine;
}

describe('a page', () => {
  const target = (engine: ScriptedEngine) => ({
    url: `${engine.root}/metrics`,
    headers: { authorization: 'Bearer k' },
    tls: undefined,
    written: true,
    subjects: [],
  });
  const open = httpPages(systemTimers);

  it('is read again and again over one connection, with the key', async () => {
    await using engine = await startEngine(answerByPath);
    engine.probes = telling(() => vllm(1, 2));
    const page = open(target(engine));
    for (let i = 0; i < 3; i++) expect(await page.read(1000)).toEqual({ page: vllm(1, 2) });
    expect(engine.connections).toBe(1);
    expect(engine.requests[0]!.header('authorization')).toBe('Bearer k');
    engine.probes = telling(() => 'not here', 404);
    expect(await page.read(1000)).toEqual({ status: 404 });
    page.close();
    await eventually('the connection is gone', () => engine.open === 0);
  });

  it('that does not come, has no end, or breaks off is a fault in time, and is read again after it', async () => {
    await using engine = await startEngine(answerByPath);
    const page = open(target(engine));
    engine.probes = never;
    expect(await page.read(100)).toEqual({ fault: 'no page within 100 ms' });
    engine.probes = async (x) => {
      await x.send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nvllm:num_requests');
      x.reset();
    };
    expect(await page.read(1000)).toEqual({ fault: expect.any(String) });
    engine.probes = async (x) => {
      await x.send('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
      for (const line = Buffer.alloc(65_536, 'x'); ; ) await x.send(line);
    };
    expect(await page.read(20_000)).toEqual({ fault: expect.stringContaining('longer than') });
    engine.probes = telling(() => vllm(0, 0));
    expect(await page.read(1000)).toEqual({ page: vllm(0, 0) });
    page.close();
    engine.refuse();
    const gone = open(target(engine));
    expect(await gone.read(1000)).toEqual({ fault: expect.stringContaining('ECONNREFUSED') });
    gone.close();
  });
});

describe('an engine whose load is known', () => {
  it('gets less when others have sent it much, under old names and new, and is told of once when it falls silent', async () => {
    await using busy = await startEngine();
    await using idle = await startEngine();
    let page: string | undefined = vllm(40, 20, 'vllm:gpu_cache_usage_perc{model_name="engine-model"} 0.9\n');
    busy.probes = telling(() => page);
    idle.probes = telling(() => vllm(0, 0, 'vllm:kv_cache_usage_perc{model_name="engine-model"} 0.1\n'));
    const gauges = [`${busy.root}/metrics`, `${idle.root}/metrics`];
    await using armature = await startArmature(plainConfig([busy, idle], { backend: { gauges } }));
    await eventually(
      'both are read',
      async () => (await engineOf(armature, 0)) && (await engineOf(armature, 1)),
    );
    const fresh = { ageMs: expect.any(Number), stale: false };
    expect(await engineOf(armature, 0)).toEqual({ waiting: 40, running: 20, cacheUsed: 0.9, ...fresh });
    expect(await engineOf(armature, 1)).toEqual({ waiting: 0, running: 0, cacheUsed: 0.1, ...fresh });
    const labels = { backend: 'b1', endpoint: busy.v1 };
    expect(await armature.metric('armature_engine_waiting', labels)).toBe(40);
    expect(await armature.metric('armature_engine_running', labels)).toBe(20);

    const ask = async (times: number) => {
      const before = [busy.posts.length, idle.posts.length];
      for (let i = 0; i < times; i++) expect((await armature.chat()).status).toBe(200);
      return [busy.posts.length - before[0]!, idle.posts.length - before[1]!];
    };
    await eventually('the worker knows', async () => (await ask(12))[0] === 0);
    expect(await ask(20)).toEqual([0, 20]);
    const id = (await armature.chat()).header('x-armature-id');
    const record = async () => (await armature.admin(`/api/v1/requests/${id}`)).json();
    const { steps } = await eventually('its record', async () =>
      (await record()).steps ? record() : undefined,
    );
    const choice = steps.find(({ code }: Json) => code === 'less-cost-of-two');
    // A request of our own may have been there when it was read.
    const others = [choice.figures.firstOthers, choice.figures.secondOthers].sort((a, b) => a - b);
    expect(others[0]).toBe(0);
    expect([59, 60]).toContain(others[1]);

    // A worker that starts anew knows it from the first request on.
    const pid = armature.kill('gateway-0');
    await eventually('another worker', () =>
      armature.parts().some((part) => part.part === 'gateway-0' && part.pid !== pid),
    );
    await armature.ready();
    expect(await ask(12)).toEqual([0, 12]);

    page = undefined;
    await eventually('it is chosen again, without them', async () => (await ask(4))[0]! > 0, 15_000);
    await eventually('it is stale', async () => (await engineOf(armature, 0))?.['stale'], 15_000);
    expect(await armature.metric('armature_engine_gauges_stale', labels)).toBe(1);
    expect((await armature.metrics()).filter(({ name }) => name === 'armature_engine_waiting')).toHaveLength(
      1,
    );
    const unread = () => armature.events('gauges-unread');
    await eventually('an event', async () => (await unread()).length > 0);
    expect(await unread()).toMatchObject([
      { subject: `endpoint:b1|${busy.v1}`, data: { url: gauges[0], fault: 'no page within 1000 ms' } },
    ]);
    page = vllm(0, 1);
    await eventually(
      'it is read again',
      async () => (await armature.events('gauges-read')).length === 1,
      10_000,
    );
    expect(await engineOf(armature, 0)).toEqual({ waiting: 0, running: 1, ...fresh });
    expect(await unread()).toHaveLength(1);
  });

  it('is read once, however many workers and models there are, each model by its label', async () => {
    await using engine = await startEngine();
    let reading = 0;
    let most = 0;
    engine.probes = telling(() => {
      most = Math.max(most, ++reading);
      void pause(50).then(() => reading--);
      return vllm(3, 4) + vllm(5, 6).replaceAll('engine-model', 'other-model');
    });
    const vllmOf = (model: string) => backendOf(engine, { engine: 'vllm', model });
    await using armature = await startArmature({
      gateway: { workers: 2 },
      backends: { b1: vllmOf('engine-model'), b2: vllmOf('other-model') },
      routes: { chat: { targets: [{ backend: 'b1' }] } },
    });
    const told = async () =>
      (await armature.admin('/api/v1/status'))
        .json()
        .backends.map(({ endpoints }: Json) => [endpoints[0].engine?.waiting, endpoints[0].engine?.running]);
    await eventually('both are read', async () => JSON.stringify(await told()) === '[[3,4],[5,6]]');
    const from = scrapes(engine);
    await eventually('it is read on', () => scrapes(engine) >= from + 3, 10_000);
    expect(most).toBe(1);
  });

  it('is a host of ours as well; one that nobody can read is chosen as ever, and no word is lost about it', async () => {
    await using mute = await startEngine();
    mute.probes = telling(() => 'not found', 404);
    await using armature = await startArmature({
      backends: { b1: { engine: 'sim' }, b2: backendOf(mute, { engine: 'vllm' }) },
      routes: { chat: { targets: [{ backend: 'b2' }] } },
    });
    await eventually(
      'the host is read',
      async () => (await engineOf(armature, 0))?.['running'] === 0,
      10_000,
    );
    await eventually('the other was asked', () => scrapes(mute) >= 2, 10_000);
    expect((await armature.chat()).json()).toEqual(chatAnswer());
    expect(await armature.events('gauges-unread')).toEqual([]);
    expect((await armature.metrics()).filter(({ name }) => name === 'armature_engine_gauges_stale')).toEqual([
      { name: 'armature_engine_gauges_stale', labels: expect.objectContaining({ backend: 'b1' }), value: 0 },
    ]);
  });
});
