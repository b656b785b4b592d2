import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import type { Link } from '../links/link.ts';
import type { Listener } from '../links/listen.ts';
import { listen } from '../links/listen.ts';
import type { ControlToSupervisor, Hello, PartSpec, SupervisorToControl } from '../links/messages.ts';
import { EXIT_FATAL } from '../links/part.ts';
import { AdoptedPart } from './adopted-part.ts';
import { signalPid } from './child-launcher.ts';
import type { Exit, Launcher } from './contracts.ts';
import { ControlNotices } from './control-notices.ts';
import { type KeeperTools, PartKeeper } from './part-keeper.ts';

/** How long parts of an earlier supervisor have to say hello; they try again every quarter second or sooner. */
const ADOPT_MS = 500;

/** Gateways first, so that they drain while all else runs; control last, so that it stores their last facts. */
const LEAVING_ORDER: readonly PartSpec['role'][] = ['gateway', 'host', 'control'];

type PartLink = Link<ControlToSupervisor, SupervisorToControl>;

/** One part that runs, as it is remembered for a supervisor that may follow. */
export interface RunningPart {
  part: string;
  pid: number;
  address?: string;
  /** What it was started as; a part of another identity is not the one that is wanted. */
  identity: string;
}

/** The parts of pino's logger that are used here. */
interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface SupervisorOptions {
  launcher: Launcher;
  clock: Clock;
  timers: Timers;
  random: Random;
  log: Log;
  /** Called whenever a part has started or left. */
  onChange: (running: RunningPart[]) => void;
  /** A part has left with EXIT_FATAL; it is started again all the same, unless everything is ended now. */
  onFatal: (part: string) => void;
}

/** Keeps the parts of one Armature running, whoever started them, and ends them in order. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #keepers = new Map<string, PartKeeper>();
  readonly #notices = new ControlNotices();
  readonly #tools: KeeperTools;
  /** Keepers of parts that are not wanted any more and have not left yet. */
  readonly #retired = new Set<PartKeeper>();
  /** By part: workers that go on until their successors are there. */
  readonly #predecessors = new Map<string, PartKeeper>();
  /** Identities of the parts that an earlier supervisor started, by part. */
  readonly #earlier = new Map<string, string>();
  /** By pid. */
  readonly #adopted = new Map<number, AdoptedPart>();
  #listener: Promise<Listener> | undefined;
  #leaving = false;
  readonly #left = Promise.withResolvers<void>();
  #hurried = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#tools = {
      ...options,
      onStarted: (spec, pid, adopted) => this.#partStarted(spec, pid, adopted),
      onLeft: (spec, pid, exit, restartInMs) => this.#partLeft(spec, pid, exit, restartInMs),
    };
  }

  /**
   * Listens at `socket`, takes over those of the `earlier` parts that say hello in time, and starts all others. Resolves
   * when every part has been started or taken over.
   */
  async start(socket: string, parts: readonly PartSpec[], earlier: readonly RunningPart[]): Promise<void> {
    for (const { part, identity } of earlier) this.#earlier.set(part, identity);
    for (const spec of parts) this.#keepers.set(spec.part, new PartKeeper(spec, this.#tools));
    this.#listener = listen<ControlToSupervisor, SupervisorToControl>(socket, {
      onConnect: (link) => this.#connected(link),
    });
    await this.#listener;
    if (earlier.length > 0) await this.#adopting(earlier);
    if (this.#leaving) return;
    for (const keeper of this.#keepers.values()) keeper.start();
  }

  /** Makes the running parts those of the list: starts, ends, and replaces what has another revision. */
  want(parts: readonly PartSpec[]): void {
    if (this.#leaving) return;
    const wanted = new Set(parts.map(({ part }) => part));
    for (const [part, keeper] of this.#keepers) {
      if (wanted.has(part)) continue;
      this.#keepers.delete(part);
      this.#retire(keeper);
      void keeper.stop();
    }
    for (const spec of parts) {
      const keeper = this.#keepers.get(spec.part);
      if (!keeper) {
        this.#add(spec);
      } else if (identityOf(keeper.spec) !== identityOf(spec)) {
        if (spec.role === 'gateway') this.#succeed(keeper, spec);
        else void keeper.replace(spec);
      } else {
        keeper.spec = spec;
      }
    }
  }

  #add(spec: PartSpec): void {
    const added = new PartKeeper(spec, this.#tools);
    this.#keepers.set(spec.part, added);
    added.start();
  }

  #retire(keeper: PartKeeper): void {
    this.#retired.add(keeper);
    keeper.rest();
  }

  /** Workers may stand beside each other, so callers need not wait for one to leave before the next one comes. */
  #succeed(keeper: PartKeeper, spec: PartSpec): void {
    this.#retire(keeper);
    if (this.#predecessors.has(spec.part)) void keeper.stop();
    else this.#predecessors.set(spec.part, keeper);
    this.#add(spec);
  }

  /** Passes a signal to control. */
  signalControl(name: NodeJS.Signals): void {
    this.#keepers.get('control')?.signal(name);
  }

  /** Ends every part in order; `left` resolves when all are gone. Called again, it hurries. */
  leave(): Promise<void> {
    if (this.#leaving) {
      this.#hurried = true;
      for (const keeper of this.#all()) if (keeper.stopping) void keeper.stop(true);
    } else {
      this.#leaving = true;
      this.#leaveInOrder().then(this.#left.resolve, this.#left.reject);
    }
    return this.left;
  }

  /** Resolves when everything has left. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  async #leaveInOrder(): Promise<void> {
    for (const keeper of this.#all()) keeper.rest();
    for (const role of LEAVING_ORDER) {
      const keepers = this.#all().filter((keeper) => keeper.spec.role === role);
      await Promise.all(keepers.map((keeper) => keeper.stop(this.#hurried)));
    }
    await (await this.#listener)?.close();
  }

  get running(): RunningPart[] {
    return [...this.#keepers.values()].flatMap(({ spec, pid }) => {
      const { part, address } = spec;
      return pid === undefined
        ? []
        : [{ part, pid, identity: identityOf(spec), ...(address && { address }) }];
    });
  }

  #all(): PartKeeper[] {
    return [...this.#keepers.values(), ...this.#retired];
  }

  /** Resolves when all of the earlier parts have been taken over, or when there was time enough for it. */
  #adopting(earlier: readonly RunningPart[]): Promise<void> {
    const { clock, timers } = this.#options;
    const end = clock.mono() + ADOPT_MS;
    return new Promise((resolve) => {
      const look = () => {
        const missing = earlier.some(({ part }) => {
          const keeper = this.#keepers.get(part);
          return keeper !== undefined && keeper.pid === undefined;
        });
        if (missing && clock.mono() < end) timers.set(10, look);
        else resolve();
      };
      look();
    });
  }

  #connected(link: PartLink): void {
    const { log } = this.#options;
    link.onMessage = (message) => {
      if (message.type !== 'hello') throw new Error('a part must say hello first');
      this.#greeted(link, message);
    };
    link.onClose = (fault) =>
      fault && log.warn({ fault: fault.message }, 'a connection that said no hello ended');
  }

  #greeted(link: PartLink, hello: Hello): void {
    const { part, pid, role } = hello;
    if (typeof part !== 'string' || !Number.isSafeInteger(pid) || pid < 2)
      throw new Error('a hello makes no sense');
    const keeper = this.#keepers.get(part);
    link.onMessage = undefined;
    link.onClose = undefined;
    if (keeper && keeper.pid === undefined && !this.#leaving) this.#adopt(keeper, hello);
    else if (keeper?.pid !== pid) {
      this.#options.log.warn({ childPid: pid }, `a ${part} that is not wanted is told to leave`);
      signalPid(pid, 'SIGTERM');
      return;
    }
    void this.#predecessors.get(part)?.stop();
    this.#predecessors.delete(part);
    const adopted = this.#adopted.get(pid);
    if (adopted) {
      adopted.linkUp();
      link.onClose = () => adopted.linkDown();
    }
    if (role === 'control') this.#controlUp(link);
  }

  #adopt(keeper: PartKeeper, { part, pid, role }: Hello): void {
    const adopted = new AdoptedPart(pid, this.#options.timers);
    this.#adopted.set(pid, adopted);
    keeper.adopt(adopted);
    const { spec } = keeper;
    const identity = this.#earlier.get(part);
    if (identity !== undefined && identity !== identityOf(spec)) void keeper.replace(spec);
    // The file may have changed since it was read for the control that is taken over.
    else if (role === 'control') adopted.signal('SIGHUP');
  }

  #controlUp(link: PartLink): void {
    const send = (notice: SupervisorToControl) => link.send(notice);
    const { onClose } = link;
    link.onMessage = (message) => {
      if (message.type === 'want') this.want(message.parts);
    };
    link.onClose = (fault) => {
      this.#notices.down(send);
      onClose?.(fault);
    };
    link.send({ type: 'parts', parts: [...this.#keepers.keys()] });
    this.#notices.up(send);
  }

  #partStarted({ part }: PartSpec, pid: number, adopted: boolean): void {
    this.#options.log.info({ childPid: pid }, `${part} ${adopted ? 'taken over' : 'started'}`);
    this.#options.onChange(this.running);
    this.#notices.tell({ type: 'part-started', part, pid, adopted, wallMs: this.#options.clock.wall() });
  }

  #partLeft({ part }: PartSpec, pid: number, { exitCode, signal }: Exit, restartInMs: number | null): void {
    const { log, clock } = this.#options;
    const fields = { childPid: pid, exitCode, signal };
    if (restartInMs === null) log.info(fields, `${part} left`);
    else log.warn({ ...fields, restartInMs }, `${part} died`);
    this.#adopted.delete(pid);
    for (const keeper of this.#retired) if (keeper.pid === undefined) this.#retired.delete(keeper);
    this.#options.onChange(this.running);
    const wallMs = clock.wall();
    this.#notices.tell({ type: 'part-left', part, pid, wallMs, exitCode, signal, restartInMs });
    if (exitCode === EXIT_FATAL) this.#options.onFatal(part);
  }
}

function identityOf({ args, revision }: PartSpec): string {
  return JSON.stringify([args, revision ?? null]);
}
