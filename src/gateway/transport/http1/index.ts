import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { systemClock } from '../../../kernel/clock.ts';
import { systemTimers, type TimerHandle } from '../../../kernel/timers.ts';
import type {
  Flight,
  OpenTransport,
  Transport,
  TransportSettings,
  UpstreamRequest,
  UpstreamSink,
} from '../../contracts.ts';
import { Connection } from './connection.ts';

/** Below the 5 s after which uvicorn, the server of most engines, closes an idle connection. */
const IDLE_MS_PLAIN = 4_000;
const IDLE_MS_TLS = 30_000;

/** Opens connections over TCP or TLS. */
export const openHttp1: OpenTransport = (origin, settings) => new Http1Transport(origin, settings);

/**
 * Connections to one origin, one request at a time on each, kept in a stack: the one used last is used next, so that
 * few stay open and those stay warm. Their number is bounded by the endpoint's concurrency: a request is sent only when
 * it holds a place there.
 */
class Http1Transport implements Transport {
  readonly #target: { host: string; port: number; serverName: string | undefined; hostHeader: string };
  readonly #settings: TransportSettings;
  readonly #secure: boolean;
  readonly #context: SecureContext | undefined;
  /** Why no connection can be made at all. */
  readonly #fault: string | undefined;
  readonly #idleMs: number;
  readonly #idle: Connection[] = [];
  #sweep: TimerHandle;
  #closed = false;

  constructor(origin: string, settings: TransportSettings) {
    const url = new URL(origin);
    this.#secure = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    this.#target = {
      host,
      port: url.port === '' ? (this.#secure ? 443 : 80) : Number(url.port),
      serverName: settings.tls?.serverName ?? (isIP(host) ? undefined : host),
      hostHeader: url.host,
    };
    this.#settings = settings;
    if (this.#secure) {
      const made = secureContext(settings.tls);
      if (typeof made === 'string') this.#fault = made;
      else this.#context = made;
    }
    this.#idleMs = this.#secure ? IDLE_MS_TLS : IDLE_MS_PLAIN;
  }

  send(request: UpstreamRequest, sink: UpstreamSink): Flight {
    if (this.#fault !== undefined) return refused(this.#fault, sink);
    const connection = (request.fresh ? undefined : this.#reuse()) ?? this.#open();
    return connection.send(request, sink);
  }

  close(): void {
    this.#closed = true;
    systemTimers.clear(this.#sweep);
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #reuse(): Connection | undefined {
    const oldest = systemClock.mono() - this.#idleMs;
    for (;;) {
      const connection = this.#idle.pop();
      if (!connection || connection.idleSince >= oldest) return connection;
      connection.destroy();
    }
  }

  #open(): Connection {
    const { connectMs } = this.#settings;
    return new Connection({
      ...this.#target,
      secure: this.#secure,
      secureContext: this.#context,
      connectMs,
      onIdle: (connection) => {
        if (this.#closed) connection.destroy();
        else {
          this.#idle.push(connection);
          this.#sweep ??= systemTimers.set(this.#idleMs, () => this.#sweepIdle());
        }
      },
      onGone: (connection) => {
        const at = this.#idle.lastIndexOf(connection);
        if (at >= 0) this.#idle.splice(at, 1);
      },
    });
  }

  /** Closes what has been idle too long; the stack's bottom is the oldest. */
  #sweepIdle(): void {
    const oldest = systemClock.mono() - this.#idleMs;
    while (this.#idle.length > 0 && this.#idle[0]!.idleSince < oldest) this.#idle.shift()!.destroy();
    this.#sweep = this.#idle.length > 0 ? systemTimers.set(this.#idleMs, () => this.#sweepIdle()) : undefined;
  }
}

/** Made once for all connections; or what is wrong with the certificates, in words. */
function secureContext(tls: TransportSettings['tls']): SecureContext | string {
  if (tls?.unreadable !== undefined) return `${tls.unreadable} cannot be read`;
  try {
    return createSecureContext({
      ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls?.key === undefined ? {} : { key: tls.key }),
    });
  } catch (error) {
    return `the certificates cannot be used: ${(error as Error).message}`;
  }
}

/** A request that fails in the next turn, before anything is sent. */
function refused(message: string, sink: UpstreamSink): Flight {
  const timer = systemTimers.set(0, () => sink.onError({ kind: 'tls', message, unsent: true, stale: false }));
  return { abort: () => systemTimers.clear(timer), pause() {}, resume() {} };
}
