import type { Fact } from '../events/contracts.ts';
import type { Timers } from '../kernel/timers.ts';
import type { Link } from '../links/link.ts';
import type { ControlToGateway, GatewayToControl, Observation } from '../links/messages.ts';

export type GatewayLink = Link<GatewayToControl, ControlToGateway>;

/** A worker that is connected. One process keeps its boot over all its connections. */
export interface GatewayPeer {
  part: string;
  worker: number;
  pid: number;
  boot: string;
  send(message: ControlToGateway): boolean;
}

export type LeaseRequest = Extract<GatewayToControl, { type: 'lease-ask' | 'lease-return' | 'lease-forget' }>;

export type QuotaRequest = Extract<GatewayToControl, { type: 'quota-ask' | 'quota-used' | 'quota-known' }>;

export interface GatewayHandlers {
  /** `holdings` are the units of leases that it holds, by key. */
  joined(peer: GatewayPeer, holdings: Record<string, number>): void;
  left(peer: GatewayPeer): void;
  /** Resolves once the batch is stored; a batch whose storing fails is tried again while its worker is here. */
  facts(boot: string, sequence: number, facts: Fact[]): Promise<void>;
  /** Its last metrics, on its way out. */
  parting(peer: GatewayPeer, metrics: unknown): void;
  /** A request, `cause`, came for a backend whose host is idle. */
  wake(backend: string, cause: string): void;
  /** Throws on what makes no sense; its link then ends. */
  leases(peer: GatewayPeer, message: LeaseRequest): void;
  /** Throws likewise. */
  quotas(peer: GatewayPeer, message: QuotaRequest): void;
}

const STORE_RETRY_MS = 1000;

interface Peer extends GatewayPeer {
  link: GatewayLink;
  asks: Map<number, (data: unknown) => void>;
}

/** The workers on the other side of control's socket. */
export class Gateways {
  readonly #timers: Timers;
  readonly #handlers: GatewayHandlers;
  readonly #peers = new Map<string, Peer>();
  /** What a worker saw of answers; `lost` before could not be told. */
  onObservations: ((observations: readonly Observation[], lost: number) => void) | undefined;
  #asked = 0;
  #onDeserted: (() => void) | undefined;

  constructor(timers: Timers, handlers: GatewayHandlers) {
    this.#timers = timers;
    this.#handlers = handlers;
  }

  get peers(): readonly GatewayPeer[] {
    return [...this.#peers.values()].sort((a, b) => a.worker - b.worker);
  }

  has(boot: string): boolean {
    return this.#peers.has(boot);
  }

  /** Takes over a link whose first message said that it is a worker's. */
  accept(link: GatewayLink, hello: Extract<GatewayToControl, { type: 'hello' }>): void {
    const { part, worker, pid, boot, holdings } = hello;
    // The connection before this one may not have been seen to end yet.
    this.#leave(this.#peers.get(boot));
    const peer: Peer = {
      part,
      worker,
      pid,
      boot,
      link,
      asks: new Map(),
      send: (message) => link.send(message),
    };
    this.#peers.set(boot, peer);
    link.onMessage = (message) => this.#receive(peer, message);
    link.onClose = () => this.#leave(peer);
    this.#handlers.joined(peer, holdings);
  }

  broadcast(message: ControlToGateway): void {
    for (const peer of this.#peers.values()) peer.send(message);
  }

  /** Asks one worker; undefined where it has not answered within `withinMs` milliseconds, or has left. */
  ask(to: GatewayPeer, what: 'metrics' | 'state', withinMs: number): Promise<unknown> {
    const peer = this.#peers.get(to.boot);
    if (!peer) return Promise.resolve(undefined);
    const ask = ++this.#asked;
    return new Promise((resolve) => {
      const answered = (data: unknown) => {
        peer.asks.delete(ask);
        this.#timers.clear(limit);
        resolve(data);
      };
      const limit = this.#timers.set(withinMs, () => answered(undefined));
      peer.asks.set(ask, answered);
      if (!peer.send({ type: 'ask', ask, what })) answered(undefined);
    });
  }

  /** Resolves when no worker is connected any more, or after `withinMs` milliseconds. */
  deserted(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const late = this.#timers.set(withinMs, resolve);
      this.#onDeserted = () => {
        this.#timers.clear(late);
        resolve();
      };
      if (this.#peers.size === 0) this.#onDeserted();
    });
  }

  #receive(peer: Peer, message: GatewayToControl): void {
    switch (message.type) {
      case 'facts':
        this.#store(peer, message);
        break;
      case 'lease-ask':
      case 'lease-return':
      case 'lease-forget':
        this.#handlers.leases(peer, message);
        break;
      case 'quota-ask':
      case 'quota-used':
      case 'quota-known':
        this.#handlers.quotas(peer, message);
        break;
      case 'wake':
        this.#handlers.wake(message.backend, message.cause);
        break;
      case 'observations':
        this.onObservations?.(message.observations, message.lost);
        break;
      case 'parting':
        this.#handlers.parting(peer, message.metrics);
        break;
      case 'reply':
        peer.asks.get(message.ask)?.(message.data);
        break;
      case 'hello':
        break;
    }
  }

  /** At most the batches that a worker leaves unacknowledged wait here. */
  #store(peer: Peer, batch: Extract<GatewayToControl, { type: 'facts' }>): void {
    const { boot, sequence, facts } = batch;
    this.#handlers.facts(boot, sequence, facts).then(
      () => peer.send({ type: 'facts-stored', boot, sequence }),
      () => {
        this.#timers.set(STORE_RETRY_MS, () => {
          if (this.#peers.get(boot) === peer) this.#store(peer, batch);
        });
      },
    );
  }

  #leave(peer: Peer | undefined): void {
    if (!peer || this.#peers.get(peer.boot) !== peer) return;
    this.#peers.delete(peer.boot);
    for (const answered of [...peer.asks.values()]) answered(undefined);
    this.#handlers.left(peer);
    if (this.#peers.size === 0) this.#onDeserted?.();
  }
}
