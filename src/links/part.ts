import type { Random } from '../kernel/random.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import { type Connection, connect } from './connect.ts';
import type { ControlToSupervisor, Hello, SupervisorToControl } from './messages.ts';
import { socketPath } from './socket-path.ts';

/** A part that has been without a supervisor for so long drains and leaves. */
const ORPHAN_MS = 10_000;

/** Exit code of a part for what another start cannot mend, such as a listener that it cannot open. */
export const EXIT_FATAL = 78;

/**
 * What every part process does with the supervisor's socket: it says who it is, and goes on working while the supervisor
 * is away. A new supervisor that comes within ORPHAN_MS adopts it; after that `onOrphaned` is called, once, and the part
 * drains and leaves: by then another supervisor may start a part of the same name beside it.
 */
export function joinSupervisor(options: {
  dataDir: string;
  role: Hello['role'];
  part: string;
  boot: string;
  timers: Timers;
  random: Random;
  onOrphaned: () => void;
  /** Control hears of its siblings here. */
  onMessage?: (message: SupervisorToControl) => void;
  /** Control says here which parts it wants. */
  onUp?: () => void;
}): Connection<ControlToSupervisor> {
  const { timers, role, part, boot } = options;
  let orphaned: TimerHandle;

  const connection = connect<SupervisorToControl, ControlToSupervisor>(
    socketPath(options.dataDir, 'supervisor'),
    {
      hello: () => ({ type: 'hello', role, part, pid: process.pid, boot }),
      onMessage: (message) => options.onMessage?.(message),
      onUp() {
        timers.clear(orphaned);
        options.onUp?.();
      },
      onDown: () => wait(),
      timers,
      random: options.random,
    },
  );

  function wait(): void {
    orphaned = timers.set(ORPHAN_MS, () => {
      void connection.close();
      options.onOrphaned();
    });
  }
  wait();
  return {
    get up() {
      return connection.up;
    },
    get waiting() {
      return connection.waiting;
    },
    send: (message) => connection.send(message),
    close() {
      timers.clear(orphaned);
      return connection.close();
    },
  };
}
