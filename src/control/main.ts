import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeApp } from '../api/app.ts';
import { adminListener } from '../api/listener.ts';
import { LedgerService } from '../events/ledger.ts';
import { systemClock } from '../kernel/clock.ts';
import { hostAndPort } from '../kernel/listen-address.ts';
import { systemRandom } from '../kernel/random.ts';
import { systemTimers } from '../kernel/timers.ts';
import { listen } from '../links/listen.ts';
import type { GatewayToControl, HostToControl } from '../links/messages.ts';
import { EXIT_FATAL, joinSupervisor } from '../links/part.ts';
import { socketPath } from '../links/socket-path.ts';
import { sqliteStore } from '../store/sqlite/index.ts';
import type { Place } from '../supervisor/parts.ts';
import { createLogger, type Logger } from '../telemetry/logger.ts';
import { adminToken } from './admin-token.ts';
import { dropOvertaken } from './changes.ts';
import { overlaid, readBeginning } from './configuration.ts';
import { Control } from './control.ts';
import { TenantKeys } from './keys/index.ts';
import { beginPlanes, closePlanes, openPlanes, type Planes } from './planes.ts';
import { httpProbe } from './probing/http-probe.ts';
import { httpPages } from './scraping/http-page.ts';
import { surfaceOf } from './surface.ts';
import { workersBehind } from './worker-states.ts';

/** How long a change of keys waits until workers go by it: one that hangs holds nobody up. */
const KEY_MS = 2_000;
const timing = { clock: systemClock, timers: systemTimers, random: systemRandom };

/** The control process: `control --data DIR -c FILE`. Leaves with EXIT_FATAL where it cannot begin, having said why. */
export async function run(args: string[]): Promise<void> {
  const options = { data: { type: 'string' }, config: { type: 'string', short: 'c' } } as const;
  const { values } = parseArgs({ args, options });
  if (values.data === undefined || values.config === undefined)
    throw new Error('control wants --data DIR and -c FILE');
  const place = { data: resolve(values.data), file: resolve(values.config) };
  const log = createLogger('control');
  try {
    await start(place, log);
  } catch (error) {
    log.fatal({ err: error }, 'control cannot begin');
    // Its log is written before it leaves.
    log.flush(() => process.exit(EXIT_FATAL));
  }
}

async function start(place: Place, log: Logger): Promise<void> {
  // One that comes before all stands is heard afterwards: what was read may be older than what it tells of.
  let hungUp = false;
  let hangUp = () => {
    hungUp = true;
  };
  process.on('SIGHUP', () => hangUp());
  const { control, planes, ledger, listener, supervisor, admin } = await standUp(
    place,
    log,
    () => void retire(),
  );

  let leaving = false;
  async function leave(why: string): Promise<void> {
    if (leaving) return;
    leaving = true;
    log.info({ why }, 'leaving');
    try {
      await admin.close();
      await closePlanes(planes);
      await closeInTurn(control, listener, supervisor, planes.sessions, ledger, ledger.store);
    } catch (error) {
      log.error({ err: error }, 'not everything could be closed');
    }
    log.flush(() => process.exit(0));
  }
  /** Without a supervisor: makes room for the next control, and leaves after the workers. */
  async function retire(): Promise<void> {
    log.warn('the supervisor is gone: leaving after the workers');
    listener.release();
    await closePlanes(planes);
    await admin.close();
    await control.retire();
    await leave('the supervisor is gone');
  }
  process.on('SIGTERM', () => void leave('SIGTERM'));
  process.on('SIGINT', () => void leave('SIGINT'));
  hangUp = () => {
    void control.reload();
    try {
      admin.renew();
    } catch (error) {
      log.error({ err: error }, "the admin listener's certificate cannot be used; the one before it stays");
    }
  };
  if (hungUp) hangUp();
  log.info({ snapshot: control.snapshots.current.number }, 'control is up');
}

/** Everything that control is made of, at work. */
async function standUp(place: Place, log: Logger, onOrphaned: () => void) {
  const { ledger, effective, faults } = await openLedger(place, log);
  const planes = await openPlanes({
    ledger,
    log,
    data: place.data,
    settings: effective.settings,
    control: () => control,
    ...timing,
  });
  const senses = { probe: httpProbe(systemTimers), openPage: httpPages(systemTimers) };
  const control = await Control.start(
    { place, ledger, log, ...planes, ...senses, ...timing },
    effective,
    faults,
  );
  const listener = await listen<GatewayToControl | HostToControl, never>(socketPath(place.data, 'control'), {
    onConnect: (link) => control.accept(link),
  });
  const supervisor = joinSupervisor({
    dataDir: place.data,
    role: 'control',
    part: 'control',
    boot: randomBytes(8).toString('hex'),
    onOrphaned,
    onUp() {
      control.idle.supervisorUp();
      const parts = control.wantedParts; // where it is not known yet which of them run, the supervisor tells first
      if (parts) supervisor.send({ type: 'want', parts });
    },
    onMessage: (message) => control.heard(message),
    ...timing,
  });
  const keys = new TenantKeys({
    keys: ledger.store.keys,
    event: (draft) => ledger.event(draft),
    tenants: () => control.effective.settings.tenants,
    onChange: async ({ id }) => {
      await control.renewSnapshot([id]);
      // Whoever is told of a new key uses it at once, and one that is revoked is worth nothing from then on.
      await workersBehind(control.snapshots.current.number, control.gateways, timing.timers, KEY_MS);
    },
    ...timing,
  });
  // Workers first: they wait for their settings.
  const admin = await listenForAdmins(place, control, { ledger, keys, ...planes }, log);
  control.onWant = (parts) => void supervisor.send({ type: 'want', parts });
  beginPlanes(planes, control, keys);
  return { control, planes, ledger, listener, supervisor, admin };
}

async function closeInTurn(...parts: { close(): unknown }[]): Promise<void> {
  for (const part of parts) await part.close();
}

/** Reads the configuration, opens the store that it names, and puts over it what was changed live. */
async function openLedger(place: Place, log: Logger) {
  const { files, faults } = readBeginning(place);
  const { url } = files.settings.store;
  const path = resolve(place.data, url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : 'state.db');
  const store = sqliteStore({ path, clock: systemClock, onLoss: (what) => log.error(what) });
  const ledger = new LedgerService({ store, log, ...timing });
  const read = overlaid(files, await store.overlays.list());
  await dropOvertaken(read, ledger, log);
  return { ledger, effective: read.effective, faults };
}

async function listenForAdmins(
  place: Place,
  control: Control,
  kept: Planes & { ledger: LedgerService; keys: TenantKeys },
  log: Logger,
) {
  const { listen: address, tls } = control.effective.settings.admin;
  const { host, port } = hostAndPort(address);
  const listenHost = address.slice(0, address.lastIndexOf(':')); // as a Host header has it, brackets and all
  const localToken = adminToken(place.data);
  const surface = surfaceOf({ control, ...kept, clock: systemClock, file: place.file });
  return adminListener({
    host,
    port,
    tls,
    access: () => ({ listenHost, localToken, tokens: control.effective.settings.admin.tokens }),
    app: makeApp(surface, log),
  });
}
