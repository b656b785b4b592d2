import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import packageJson from '../../package.json' with { type: 'json' };
import { modelFiles } from '../hosts/models/find-or-fetch.ts';
import { systemClock } from '../kernel/clock.ts';
import { systemRandom } from '../kernel/random.ts';
import { systemTimers } from '../kernel/timers.ts';
import { joinSupervisor } from '../links/part.ts';
import { Preprocessing } from '../pipelines/preprocessing/index.ts';
import { assembleSessions } from '../sessions/assemble.ts';
import { createLogger } from '../telemetry/logger.ts';
import { Worker } from './worker.ts';

/** Exit code for what another start cannot mend: the supervisor gives up at once. */
const EXIT_FATAL = 78;

/**
 * V8 moves a place in the code that makes objects to the old generation once these survive a few collections. For a request
 * that is wrong: each dead one in the old generation keeps all that it knew of alive until the next full collection, which
 * makes more places look long-lived, and in the end most of what a worker allocates. Without it a request costs a fifth
 * less CPU, and a pause for collection is a millisecond instead of 15 (bench/README.md).
 */
setFlagsFromString('--no-allocation-site-pretenuring');

/** Process entry: `gateway --data DIR --worker N`. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: 'string' },
      worker: { type: 'string', default: '0' },
      config: { type: 'string', short: 'c' },
    },
  });
  const worker = Number(values.worker);
  const dataDir = values.data!;
  const part = `gateway-${worker}`;
  const log = createLogger(part);
  const boot = randomBytes(8).toString('hex');
  const [clock, random, timers] = [systemClock, systemRandom, systemTimers];

  const gateway = new Worker({
    stateful: assembleSessions({ dataDir, boot, clock, random, timers, log }),
    preprocessing: new Preprocessing({
      clock,
      timers,
      files: modelFiles(timers, log),
      warn: (text) => log.warn(text),
    }),
    dataDir,
    worker,
    boot,
    version: packageJson.version,
    clock,
    random,
    timers,
    log,
    onFatal(error) {
      log.fatal({ err: error }, 'the gateway cannot listen');
      process.exit(EXIT_FATAL);
    },
  });
  const supervisor = joinSupervisor({
    dataDir,
    role: 'gateway',
    part,
    boot,
    timers,
    random,
    onOrphaned: leave,
  });

  let leaving = false;
  function leave(): void {
    if (leaving) return;
    leaving = true;
    void gateway.drain().then(async () => {
      await supervisor.close();
      process.exit(0);
    });
  }
  process.on('SIGTERM', leave);
  // A supervisor in a hurry says so. A Ctrl-C does not come here: each part has a session of its own.
  process.on('SIGINT', () => {
    leave();
    gateway.hurry();
  });
  process.on('SIGHUP', () => log.debug('control reads the configuration'));
}
