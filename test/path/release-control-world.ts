import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { dropOvertaken } from '../../src/control/changes.ts';
import { overlaid, readConfiguration } from '../../src/control/configuration.ts';
import { Control } from '../../src/control/control.ts';
import type { ReleaseMachine, ReleaseMachines } from '../../src/control/releases/contracts.ts';
import { ReleaseService } from '../../src/control/releases/service.ts';
import { releasesSurface } from '../../src/control/releases/surface.ts';
import { LedgerService } from '../../src/events/ledger.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { VirtualTime } from '../../src/kernel/virtual-time.ts';
import type { Link, Message } from '../../src/links/link.ts';
import type {
  ControlToGateway,
  GatewayToControl,
  HostToControl,
  Snapshot,
} from '../../src/links/messages.ts';
import type { ReleasePlan, ReleaseReport } from '../../src/releases/canary/contracts.ts';
import { CanaryMachine, type CanaryState } from '../../src/releases/canary/machine.ts';
import type { Action, Gate, StoredEvidence } from '../../src/releases/contracts.ts';
import { type Store, StoreError } from '../../src/store/contracts.ts';
import { memoryStore } from '../../src/store/memory/index.ts';

const nobody = { code: 'release-step-passed', figures: { share: 0, sessions: 1, lastedMs: 1 } };

/** What a command in an event makes the scripted machine want. */
export type Command =
  | { do: 'share'; share: number }
  | { do: 'promote' }
  | { do: 'roll-back' }
  | { do: 'hold' };

interface ScriptedState {
  plan: ReleasePlan;
  wants?: Action;
  phase: ReleaseReport['phase'];
  share: number;
  ended: boolean;
  endsMs: number;
  gates: ReleaseReport['gates'];
}

/** A machine that wants what evidence commands: what the service does with it is what is tested, not when it is due. */
class ScriptedMachine implements ReleaseMachine {
  readonly #state: ScriptedState;

  constructor(state: ScriptedState) {
    this.#state = state;
  }

  get state(): CanaryState {
    return structuredClone(this.#state) as unknown as CanaryState;
  }

  get phase(): ReleaseReport['phase'] {
    return this.#state.phase;
  }
  get ended(): boolean {
    return this.#state.ended;
  }

  evidence({ event, evidence }: StoredEvidence): void {
    const { command } = evidence as unknown as { command: Command | null };
    if (!command) throw new Error('this cannot be judged');
    this.#want({ ...command, reason: nobody, causes: [event] } as Action);
  }

  gate(name: string, passed: boolean, event: string): void {
    this.#state.gates[name] = passed ? 'passed' : 'failed';
    if (passed) return;
    this.#want({
      do: 'roll-back',
      reason: { code: 'release-gate-failed', figures: { gate: name } },
      causes: [event],
    });
  }

  advance(nowMs: number): Action[] {
    const state = this.#state;
    if (state.ended) return [];
    if (nowMs >= state.endsMs && state.phase !== 'promoted')
      this.#want({
        do: 'roll-back',
        reason: { code: 'release-deadline-passed', figures: { phase: 'canary' } },
        causes: [],
      });
    if (state.phase === 'promoted' && nowMs >= state.endsMs + state.plan.watchMs) state.ended = true;
    const { wants } = state;
    if (wants?.do === 'hold') delete state.wants;
    return wants ? [wants] : [];
  }

  done(action: Action): void {
    const state = this.#state;
    if (state.wants?.do === action.do) delete state.wants;
    if (action.do === 'share') Object.assign(state, { share: action.share, phase: 'canary' });
    if (action.do === 'promote') Object.assign(state, { share: 1, phase: 'promoted' });
    if (action.do === 'roll-back') Object.assign(state, { share: 0, phase: 'rolled-back', ended: true });
  }

  abort(): boolean {
    if (this.#state.ended) return false;
    this.#want({ do: 'roll-back', reason: { code: 'release-aborted-by-operator', figures: {} }, causes: [] });
    return true;
  }

  promote(): boolean {
    if (this.#state.ended || this.#state.phase === 'promoted') return false;
    this.#want({ do: 'promote', reason: { code: 'release-promoted-by-operator', figures: {} }, causes: [] });
    return true;
  }

  report(nowMs: number): ReleaseReport {
    const { phase, share, ended, gates, plan } = this.#state;
    return { ...CanaryMachine.begin(plan, nowMs).report(nowMs), phase, share, ended, gates };
  }

  #want(action: Action): void {
    if (this.#state.wants?.do !== 'roll-back') this.#state.wants = action;
  }
}

const scripted: ReleaseMachines = {
  begin: (plan, nowMs) =>
    new ScriptedMachine({
      plan,
      phase: 'gates',
      share: 0,
      ended: false,
      endsMs: nowMs + plan.deadlineMs,
      gates: Object.fromEntries(plan.gates.map((gate) => [gate, 'open'])),
    }),
  restore: (state) => {
    if ('unreadable' in state) throw new Error('of another shape');
    return new ScriptedMachine(structuredClone(state) as unknown as ScriptedState);
  },
};

export const FILE = {
  backends: {
    old: { engine: 'vllm', model: 'm', endpoints: ['http://old/v1'] },
    older: { engine: 'vllm', model: 'm', endpoints: ['http://older/v1'] },
    next: { engine: 'vllm', model: 'm', endpoints: ['http://next/v1'] },
    tensors: { engine: 'triton', model: 'm', endpoints: ['http://tensors'] },
    simulated: { engine: 'sim' },
  },
  routes: {
    chat: {
      targets: [
        { backend: 'old', weight: 9 },
        { backend: 'older', weight: 1 },
      ],
      release: { plan: [5, 25, 100], deadline: '2h', step: { timeMin: '1m' } },
    },
    other: { targets: [{ backend: 'old' }] },
  },
};

export type File = { backends: Record<string, object>; routes: Record<string, Record<string, unknown>> };

/** Control with its releases over a store that outlives it, in virtual time: it can be killed, and started again. */
export class ReleaseWorld {
  readonly folder = mkdtempSync(join(tmpdir(), 'releases-'));
  readonly file = join(this.folder, 'armature.yaml');
  readonly time = new VirtualTime();
  readonly kept = memoryStore();
  readonly machines: ReleaseMachines;
  readonly gates: Gate[];
  readonly random = seededRandom(3);
  control!: Control;
  releases!: ReleaseService;
  ledger!: LedgerService;
  /** What a worker was told, newest last; without effect on anything. */
  worker!: FakeWorker;
  #evidence = 0;

  constructor(options: { machines?: ReleaseMachines; gates?: Gate[]; file?: object } = {}) {
    this.machines = options.machines ?? scripted;
    this.gates = options.gates ?? [];
    mkdirSync(join(this.folder, 'run'));
    this.write((options.file ?? FILE) as File);
  }

  write(file: File): void {
    writeFileSync(this.file, stringify(file));
  }

  /** With everything as it is in the store. */
  async start(store: Store = this.kept): Promise<void> {
    const log = pino({ level: 'silent' });
    const timing = { clock: this.time, timers: this.time, random: this.random };
    this.ledger = new LedgerService({ store, log, ...timing });
    const read = readConfiguration(this.file, []);
    if (!read.ok) throw new Error(JSON.stringify(read.faults));
    const over = overlaid(read.effective.files, await store.overlays.list());
    await dropOvertaken(over, this.ledger, log);
    const { machines, gates } = this;
    this.releases = await ReleaseService.open({ ledger: this.ledger, log, machines, gates, ...timing });
    const place = { data: this.folder, file: this.file };
    const openPage = () => ({ read: async () => ({ status: 404 }), close: () => undefined });
    const probe = async () => ({ status: 200 });
    const options = { place, ledger: this.ledger, log, releases: this.releases, probe, openPage, ...timing };
    this.control = await Control.start(options, over.effective);
    this.worker = new FakeWorker(this.control);
    this.releases.begin(this.control);
    await this.time.advance(10);
  }

  /** As by kill -9: nothing of it goes on. */
  kill(): void {
    this.releases.close();
    this.control.close();
    this.worker.leave();
  }

  [Symbol.dispose](): void {
    this.kill();
    rmSync(this.folder, { recursive: true });
  }

  /** What is waited for takes virtual time. */
  async within<Result>(promise: Promise<Result>): Promise<Result> {
    await this.time.advance(1000);
    return promise;
  }

  get surface() {
    return releasesSurface(this.releases, this.ledger);
  }

  begin(to = 'next', more: object = {}) {
    return this.surface.startRelease({ route: 'chat', to, ...more }, 'operator');
  }

  /** A host of this backend has come to serve there; gives back what it ends by. */
  host(backend: string, address: string): () => void {
    const link = { onMessage: undefined, onClose: undefined as ((error: undefined) => void) | undefined };
    this.control.accept(link as unknown as Link<GatewayToControl | HostToControl, Message>);
    const hello = { role: 'host', part: `host-${backend}`, pid: 2, boot: 'b', note: '', upMs: 0 };
    const { onMessage } = link as unknown as Link<HostToControl, Message>;
    onMessage!({ type: 'hello', ...hello, backend, address } as HostToControl);
    return () => link.onClose?.(undefined);
  }

  /** What the machine of a release is to want now, as if evidence had said so. */
  async command(release: string, command: Command): Promise<string> {
    const id = `ev_evidence${++this.#evidence}`;
    const arm = { requests: 1, failed: 0 };
    const arms = { canary: arm, baseline: arm, stable: arm };
    const data = { release, route: 'chat', worker: 0, share: 0, arms, pairs: [], command };
    const at = new Date(this.time.wall()).toISOString();
    const event = {
      id,
      at,
      type: 'evidence-gathered',
      subject: `release:${release}`,
      actor: 'armature',
      causes: [],
      data,
    };
    await this.kept.ledger.append([event]);
    this.ledger.store.onStored?.();
    await this.time.advance(3000);
    return id;
  }

  get snapshot(): Snapshot {
    return this.control.snapshots.current;
  }

  targets(route = 'chat') {
    return this.snapshot.settings.routes[route]?.targets;
  }

  async events(type?: string) {
    const found = await this.kept.ledger.events({
      order: 'asc',
      limit: 1000,
      ...(type !== undefined && { type }),
    });
    return found.map(({ event }) => event);
  }

  async releaseEvents(): Promise<string[]> {
    return (await this.events()).map(({ type }) => type).filter((type) => type.startsWith('release-'));
  }
}

/** A worker as control sees one: it takes each snapshot, and tells its number when it is asked. */
export class FakeWorker {
  snapshots: Snapshot[] = [];
  readonly #link: Link<GatewayToControl | HostToControl, Message>;

  constructor(control: Control) {
    const link = {
      onMessage: undefined as ((message: GatewayToControl) => void) | undefined,
      onClose: undefined,
      send: (message: ControlToGateway) => {
        if (message.type === 'snapshot') this.snapshots.push(structuredClone(message.snapshot));
        if (message.type === 'ask') {
          const data = { snapshot: this.snapshots.at(-1)?.number ?? 0, hosts: [], routes: [], endpoints: [] };
          queueMicrotask(() => link.onMessage?.({ type: 'reply', ask: message.ask, data }));
        }
        return true;
      },
    };
    this.#link = link as unknown as Link<GatewayToControl | HostToControl, Message>;
    control.accept(this.#link);
    const hello = {
      type: 'hello',
      role: 'gateway',
      part: 'gateway-0',
      pid: 1,
      boot: 'b',
      worker: 0,
      holdings: {},
    };
    this.#link.onMessage?.(hello as GatewayToControl);
  }

  leave(): void {
    this.#link.onClose?.(undefined);
  }
}

/** The store of a process that dies at its n-th write: that one is made, or not, and none after it. */
export function dyingStore(
  store: Store,
  dies: { at: number; made: boolean },
): Store & { readonly writes: number } {
  let writes = 0;
  const gone = () => Promise.reject(new StoreError('gone', 'the process is dead'));
  const write =
    <Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      writes++;
      if (writes > dies.at || (writes === dies.at && !dies.made)) return gone();
      const made = await run(...args);
      return writes >= dies.at ? gone() : made;
    };
  const dying: Partial<Store> = {
    ledger: { ...bound(store.ledger), append: write(store.ledger.append.bind(store.ledger)) },
    overlays: { ...bound(store.overlays), change: write(store.overlays.change.bind(store.overlays)) },
    snapshots: { ...bound(store.snapshots), publish: write(store.snapshots.publish.bind(store.snapshots)) },
    documents: { ...bound(store.documents), change: write(store.documents.change.bind(store.documents)) },
  };
  return new Proxy(store, {
    get: (of, name) => (name === 'writes' ? writes : Reflect.get(name in dying ? dying : of, name)),
  }) as Store & { readonly writes: number };
}

/** Methods of an object, whatever they are kept in, each with its own `this`. */
function bound<Methods extends object>(methods: Methods): Methods {
  return new Proxy(methods, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name);
      return typeof value === 'function' ? value.bind(of) : value;
    },
    ownKeys: (of) => [...new Set([...Reflect.ownKeys(of), ...Reflect.ownKeys(Object.getPrototypeOf(of))])],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
  });
}
