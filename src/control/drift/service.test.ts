import { describe, expect, it } from 'vitest';
import { type Settings, settingsSchema } from '../../config/schema/index.ts';
import { LedgerService } from '../../events/ledger.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { Observation } from '../../links/messages.ts';
import { type Store, StoreError } from '../../store/contracts.ts';
import { memoryStore } from '../../store/memory/index.ts';
import type { RunHook } from './hook.ts';
import { type DriftControl, DriftService } from './service.ts';

const log = { warn() {}, error() {} };
const DRIFT = { features: ['answerTokens'], reference: { size: 200 }, freshRows: 50, labels: 200 };

function settingsWith(drift: object | undefined, model = 'm'): Settings {
  return settingsSchema.parse({
    backends: { b1: { engine: 'openai', model, endpoints: ['http://a/v1'] } },
    routes: { chat: { targets: [{ backend: 'b1' }], ...(drift && { drift }) } },
  });
}

/** One store and one clock, and as many controls after another as a test wants. */
class World {
  readonly time = new VirtualTime();
  readonly random = seededRandom(3);
  readonly store: Store = memoryStore();
  readonly ledger: LedgerService;
  readonly hooks: { body: string; answer: PromiseWithResolvers<string | undefined> }[] = [];
  control: { effective: { settings: Settings }; gateways: DriftControl['gateways'] };
  service!: DriftService;
  #sent = 0;

  constructor(settings: Settings) {
    this.control = { effective: { settings }, gateways: { onObservations: undefined } };
    this.ledger = new LedgerService({
      store: this.store,
      clock: this.time,
      timers: this.time,
      random: this.random,
      log,
    });
  }

  async open(): Promise<this> {
    const { ledger, time, random } = this;
    const runHook: RunHook = (_hook, body) => {
      const answer = Promise.withResolvers<string | undefined>();
      this.hooks.push({ body, answer });
      return answer.promise;
    };
    this.service = await DriftService.open({ ledger, clock: time, timers: time, random, log, runHook });
    this.service.begin(this.control);
    return this;
  }

  /** Answers of about so many tokens, ten a second. */
  async send(count: number, around: number, more: Partial<Observation> = {}): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const request = `req_${++this.#sent}`;
      ids.push(request);
      const values = { answerTokens: around + Math.floor(50 * this.random.next()) };
      const seen = { route: 'chat', backend: 'b1', model: 'm', request, values, ...more };
      this.control.gateways.onObservations!([seen], 0);
      await this.time.advance(100);
    }
    return ids;
  }

  async types(): Promise<string[]> {
    await this.time.advance(10_000);
    const events = await this.store.ledger.events({ order: 'asc', limit: 100 });
    return events.map(({ event }) => event.type);
  }

  get view() {
    return this.service.all[0]!;
  }
}

describe('the service of drift', () => {
  it('goes on where a control that died left off, and tells an alarm once', async () => {
    const world = await new World(settingsWith(DRIFT)).open();
    await world.send(300, 50);
    await world.time.advance(10_000);
    const { rows } = world.view;
    await world.open(); // the first was not closed
    expect(world.view.rows).toBe(rows);
    await world.send(60, 90);
    expect(world.view.incident).toMatchObject({ first: { feature: 'answerTokens', direction: 'higher' } });
    await world.open();
    await world.send(60, 90);
    const types = await world.types();
    expect(types.filter((type) => type === 'drift-detected')).toHaveLength(1);
    expect(types.filter((type) => type === 'drift-reference-frozen')).toHaveLength(1);
    expect(types).toContain('drift-confirmed');
  });

  it('calls a hook again where it fails or control dies, three times at the most', async () => {
    const hook = { url: 'http://trainer/start' };
    const world = await new World(settingsWith({ ...DRIFT, hook })).open();
    await world.send(300, 50);
    await world.send(150, 90);
    expect(world.hooks).toHaveLength(1);
    await world.time.advance(10_000);
    await world.open(); // nobody knows whether the hook heard of it
    expect(world.hooks).toHaveLength(2);
    expect(JSON.parse(world.hooks[1]!.body).alarm).toBe(world.view.incident!.event);
    world.hooks[1]!.answer.reject(new Error('it answered 500'));
    await world.time.advance(31_000);
    expect(world.hooks).toHaveLength(3);
    world.hooks[2]!.answer.reject(new Error('it answered 500'));
    await world.time.advance(100_000);
    expect(world.hooks).toHaveLength(3);
    expect(world.view.hook).toMatchObject({ state: 'failed', error: 'it answered 500' });
    expect(await world.types()).toContain('retraining-failed');
  });

  it('begins anew with another model, forgets what is not watched any more, and takes no observations of before', async () => {
    const world = await new World(settingsWith(DRIFT)).open();
    await world.send(250, 50);
    world.control.effective = { settings: settingsWith(DRIFT, 'm2') };
    await world.send(10, 50);
    expect(world.view).toMatchObject({ model: 'm2', rows: 0 });
    expect(world.service.counts).toEqual({ observed: 250, lost: 10 });
    expect(await world.types()).toContain('drift-reference-renewed');
    expect(await world.store.documents.list('drift', 10)).toHaveLength(1);
    world.control.effective = { settings: settingsWith(undefined) };
    await world.send(1, 50);
    await world.time.advance(10_000);
    expect(world.service.all).toEqual([]);
    expect(await world.store.documents.list('drift', 10)).toEqual([]);
    expect(world.service.watches('chat')).toBe(false);
  });

  it('ends an incident aloud where its backend serves another model once control is back, and goes on past what it cannot read', async () => {
    const world = await new World(settingsWith(DRIFT)).open();
    await world.send(300, 50);
    await world.send(60, 90);
    const { event } = world.view.incident!;
    await world.time.advance(10_000);
    world.control.effective = { settings: settingsWith(DRIFT, 'm2') };
    await world.open();
    await world.time.advance(10_000);
    const events = await world.store.ledger.events({ order: 'asc', limit: 100 });
    const renewed = events.filter((each) => each.event.type === 'drift-reference-renewed');
    expect(renewed.map((each) => [each.event.causes, each.event.data['model']])).toEqual([[[event], 'm2']]);
    expect(await world.store.documents.list('drift', 10)).toEqual([]);
    await world.send(5, 50, { model: 'm2' });
    await world.time.advance(10_000);
    const [stored] = await world.store.documents.list('drift', 10);
    const body = { ...(stored!.body as object), monitor: { rows: 5, features: { answerTokens: {} } } };
    await world.store.documents.change([{ kind: 'drift', id: stored!.id, on: stored!.revision, body }], []);
    await world.open();
    await world.send(3, 50, { model: 'm2' });
    expect(world.view).toMatchObject({ model: 'm2', rows: 3 });
  });

  it('holds labels against predictions, over a restart too, and finds out when they stop meaning what they did', async () => {
    const world = await new World(settingsWith(DRIFT)).open();
    const label = async (count: number, share: number) => {
      const ids = await world.send(count, 50, { score: 0.9, class: '1' });
      return world.service.label(
        ids.map((request) => ({ request, label: world.random.next() < share ? 1 : 0 })),
      );
    };
    const [early] = await world.send(1, 50, { score: 0.9 });
    expect(await label(300, 0.9)).toEqual({ matched: 300, unmatched: 0, unusable: 0 });
    await world.time.advance(10_000);
    await world.open();
    expect(world.service.label([{ request: early!, label: 'x' }])).toMatchObject({ unusable: 1 });
    expect(
      world.service.label([
        { request: early!, right: true },
        { request: 'req_2', right: true },
      ]),
    ).toMatchObject({ unmatched: 2 });
    expect(world.view.quality).toMatchObject({ labels: 300, state: 'watching', calibrated: true });
    await label(300, 0.4);
    expect(world.view.incident!.first).toMatchObject({
      feature: 'quality',
      change: 'calibration',
      direction: 'overconfident',
    });
    const { quality } = world.view;
    expect(quality).toMatchObject({ calibrated: false });
    expect(quality!.calibrationError!).toBeGreaterThan(2 * quality!.calibrationErrorUsual!);
  });

  it('keeps what it cannot store until it can, also where another control wrote last', async () => {
    const world = await new World(settingsWith(DRIFT)).open();
    const { documents } = world.store;
    const change = documents.change.bind(documents);
    documents.change = () => Promise.reject(new StoreError('full', 'no room'));
    await world.send(100, 50);
    documents.change = change;
    await change([{ kind: 'drift', id: 'chat|b1', on: 0, body: {} }], []);
    await world.send(100, 50);
    await world.time.advance(20_000);
    expect((await documents.get('drift', 'chat|b1'))!.body).toMatchObject({
      route: 'chat',
      monitor: { rows: 200 },
    });
    await world.send(5, 50);
    await world.service.close();
    await world.open();
    expect(world.view.rows).toBe(205);
  });
});
