import { existsSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { resolve } from 'node:path';
import { formatNotice } from '../config/faults.ts';
import { keepLastGood } from '../config/last-good.ts';
import { CONFIG_FILE, loadConfig } from '../config/load.ts';
import type { Settings } from '../config/schema/index.ts';
import { systemClock } from '../kernel/clock.ts';
import { systemRandom } from '../kernel/random.ts';
import { systemTimers } from '../kernel/timers.ts';
import { formatDuration } from '../kernel/units.ts';
import { socketPath } from '../links/socket-path.ts';
import { childLauncher } from '../supervisor/child-launcher.ts';
import { type Addresses, DataDir, type SupervisorRecord } from '../supervisor/data-dir.ts';
import { parts } from '../supervisor/parts.ts';
import { findTaken } from '../supervisor/ports.ts';
import { Supervisor } from '../supervisor/supervisor.ts';
import { createLogger, type Logger } from '../telemetry/logger.ts';
import { reportFaults } from './check.ts';
import { askedWrongly, type CommonOptions, defineCommand, failed } from './command.ts';
import { withLiveChanges } from './live-changes.ts';

const READY_POLL_MS = 50;

const NOTHING_HERE = `there is no ${CONFIG_FILE} in this folder. Name another file with -c FILE, or write one; this is enough to begin:

backends:
  mine: { engine: openai, model: MODEL, endpoints: ["http://127.0.0.1:8000/v1"] }
routes:
  chat: { targets: [{ backend: mine }] }`;

export const command = defineCommand({
  details:
    'Runs until SIGTERM or Ctrl-C, which lets running requests end; a second Ctrl-C hurries. SIGHUP reads the file again.',
  async run({ common, output }) {
    const file = common.config ?? CONFIG_FILE;
    if (common.config === undefined && !existsSync(file)) throw askedWrongly(NOTHING_HERE);
    const loaded = loadConfig(file);
    if (!loaded.ok) {
      reportFaults(loaded.faults, output);
      return 2;
    }
    const place = { data: resolve(common.data), file: resolve(file) };
    const dir = take(common.data, place.data);
    // What was changed live counts from the first moment: control will run on it too.
    const { settings } = withLiveChanges(loaded.config, place.data).config;
    const wanted = parts(settings, place);
    let addresses = addressesOf(wanted, { gateway: '', admin: '' });
    if (dir.earlier.length === 0) {
      const taken = await findTaken([settings.gateway.listen, settings.admin.listen]);
      if (taken) {
        dir.release();
        throw failed(taken);
      }
    }
    dir.keepToken();
    keepLastGood(place.data, place.file, loaded.config.files);
    const log = createLogger('supervisor');
    for (const notice of loaded.config.notices) log.warn(formatNotice(notice));
    if (output.tty && !common.json) output.print(picture(common, settings, addresses));

    const since = new Date(systemClock.wall()).toISOString();
    const record: SupervisorRecord = { pid: process.pid, since, parts: dir.earlier, ...addresses };
    dir.record(record);
    dir.publish(addresses);
    let ready = false;
    let exitCode = 0;
    const supervisor = new Supervisor({
      launcher: childLauncher(process.argv[1]!),
      clock: systemClock,
      timers: systemTimers,
      random: systemRandom,
      log,
      onChange(running) {
        addresses = addressesOf(running, addresses);
        try {
          dir.record({ ...record, ...addresses, parts: running });
          dir.publish(addresses);
        } catch (error) {
          // A full disk is no reason to end what runs; a supervisor that follows starts parts instead of taking them over.
          log.warn({ err: error }, 'which parts run cannot be written down');
        }
      },
      onFatal(part) {
        // Somebody is watching the start; later on, trying again is better than leaving.
        if (ready || exitCode === 1) return;
        exitCode = 1;
        log.fatal(`${part} cannot run: its own last line says why`);
        void supervisor.leave();
      },
    });
    onSignals(supervisor, log);
    await supervisor.start(socketPath(place.data, 'supervisor'), wanted, dir.earlier);
    void untilReady(addresses.gateway, supervisor.left).then((after) => {
      if (after === undefined) return;
      ready = true;
      if (common.json) output.json({ pid: process.pid, data: place.data, ...addresses });
      log.info(`ready after ${formatDuration(after)}: ${addresses.gateway}/v1`);
    });
    await supervisor.left;
    dir.release();
    log.info('left');
    return exitCode;
  },
});

function take(shown: string, path: string): DataDir {
  let taking: ReturnType<typeof DataDir.take>;
  try {
    taking = DataDir.take(path);
  } catch (error) {
    throw failed(`the data directory ${shown} cannot be used: ${(error as Error).message}`);
  }
  if (taking.taken) return taking.dir;
  const { holder } = taking;
  if (!holder) throw failed(`the data directory ${shown} is held by another Armature`);
  const { pid, since, gateway, admin } = holder;
  throw failed(
    `the data directory ${shown} is held by another Armature: pid ${pid}, since ${since}, gateway ${gateway}, admin ${admin}`,
  );
}

/** Where the parts are reached; as before where a part that would say it does not run. */
function addressesOf(parts: readonly { part: string; address?: string }[], before: Addresses): Addresses {
  const of = (name: string) => parts.find(({ part }) => part === name)?.address;
  return { gateway: of('gateway-0') ?? before.gateway, admin: of('control') ?? before.admin };
}

function onSignals(supervisor: Supervisor, log: Logger): void {
  let asked = 0;
  const leave = (signal: string) => {
    log.info(++asked === 1 ? `${signal}: running requests may end` : `${signal} again: in a hurry`);
    void supervisor.leave();
  };
  process.on('SIGTERM', leave);
  process.on('SIGINT', leave);
  process.on('SIGHUP', () => supervisor.signalControl('SIGHUP'));
}

/** Milliseconds until callers are answered; undefined where everything has left before. */
async function untilReady(gateway: string, left: Promise<void>): Promise<number | undefined> {
  const began = systemClock.mono();
  let leaving = false;
  void left.finally(() => {
    leaving = true;
  });
  while (!leaving) {
    if (await isReady(gateway)) return systemClock.mono() - began;
    await new Promise<void>((resolve) => systemTimers.set(READY_POLL_MS, resolve));
  }
  return undefined;
}

function isReady(gateway: string): Promise<boolean> {
  const ask = gateway.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    // Its certificate is for callers; this only asks whether it answers.
    const request = ask(`${gateway}/readyz`, { agent: false, rejectUnauthorized: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    request.on('error', () => resolve(false));
    request.end();
  });
}

function picture(common: CommonOptions, settings: Settings, addresses: Addresses): string {
  const { workers } = settings.gateway;
  const lines = [
    `Armature runs ${common.config ?? CONFIG_FILE}, and keeps its state in ${common.data}`,
    `  gateway  ${addresses.gateway}/v1  (${workers === 1 ? '1 worker' : `${workers} workers`})`,
    `  admin    ${addresses.admin}`,
  ];
  for (const [name, { targets }] of Object.entries(settings.routes)) {
    const backends = targets.map(({ backend }) => `${backend} (${settings.backends[backend]?.engine})`);
    lines.push(`  route    ${name} -> ${backends.join(', ')}`);
  }
  const data = common.dataGiven ? ` --data ${common.data}` : '';
  lines.push(`In another terminal: armature status${data}, armature ask${data} "Hello". Ctrl-C stops it.`);
  return lines.join('\n');
}
