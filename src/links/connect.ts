import { connect as open } from 'node:net';
import type { Random } from '../kernel/random.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import { Link, type Message } from './link.ts';

const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 250;

export interface ConnectOptions<In extends Message, Out extends Message> {
  /** The first message of every connection, made anew for each. */
  hello: () => Out;
  onMessage: (message: In) => void;
  /** A connection stands and the hello has been sent. */
  onUp?: () => void;
  /** The connection has ended; it is tried again without being asked. */
  onDown?: (fault: Error | undefined) => void;
  timers: Timers;
  random: Random;
}

export interface Connection<Out extends Message> {
  readonly up: boolean;
  /** Characters on their way to the kernel. */
  readonly waiting: number;
  /** False while there is no connection: nothing is kept for later. */
  send(message: Out): boolean;
  /** Ends it, after what was sent has left; resolves when the socket is closed. No handler is called any more. */
  close(): Promise<void>;
}

/**
 * Keeps a link to a Unix socket, whether its listener is there yet or not, until it is closed. Tries again after 20 ms,
 * doubled up to 250 ms and shortened by up to a half at random: that is cheap on a socket of the same machine, and a
 * listener that was restarted is found almost at once.
 */
export function connect<In extends Message, Out extends Message>(
  path: string,
  options: ConnectOptions<In, Out>,
): Connection<Out> {
  let link: Link<In, Out> | undefined;
  let up = false;
  let closed: (() => void) | undefined;
  let closing: Promise<void> | undefined;
  let retryMs = RETRY_MS_MIN;
  let timer: TimerHandle;

  function attempt(): void {
    timer = undefined;
    const socket = open(path);
    const opened = new Link<In, Out>(socket);
    link = opened;
    opened.onMessage = (message) => {
      if (!closed) options.onMessage(message);
    };
    opened.onClose = (fault) => {
      link = undefined;
      if (closed) return closed();
      const was = up;
      up = false;
      // A connection that ended in a fault may do so again at once; one that merely ended is a listener restarting.
      if (was) retryMs = fault ? RETRY_MS_MAX : RETRY_MS_MIN;
      timer = options.timers.set(retryMs * (1 - options.random.next() / 2), attempt);
      retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      if (was) options.onDown?.(fault);
    };
    socket.once('connect', () => {
      if (closed) return;
      up = true;
      opened.send(options.hello());
      options.onUp?.();
    });
  }

  attempt();
  return {
    get up() {
      return up;
    },
    get waiting() {
      return link?.waiting ?? 0;
    },
    send: (message) => up && (link?.send(message) ?? false),
    close() {
      closing ??= new Promise((resolve) => {
        closed = resolve;
        up = false;
        if (link) return link.close();
        options.timers.clear(timer);
        resolve();
      });
      return closing;
    },
  };
}
