import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { formatFaults } from '../config/faults.ts';
import { CONFIG_FILE, loadConfig } from '../config/load.ts';
import type { Settings } from '../config/schema/index.ts';
import { type CreatedKey, type KeyView, TenantKeys } from '../control/keys/index.ts';
import { eventMaker } from '../events/event-maker.ts';
import { systemClock } from '../kernel/clock.ts';
import type { Failure } from '../kernel/errors.ts';
import { systemRandom } from '../kernel/random.ts';
import { type Store, StoreError } from '../store/contracts.ts';
import { sqliteStore } from '../store/sqlite/index.ts';
import { DataDir } from '../supervisor/data-dir.ts';
import { allOf } from './all-of.ts';
import { type ActionGroup, askedWrongly, type CommonOptions, defineAction, failed } from './command.ts';
import { table } from './output.ts';
import { findRunning, NotRunning } from './running.ts';

/** What can be done with keys, by a running Armature or, where none runs, by hand. */
interface KeyDesk {
  create(tenant: string, name: string): Promise<CreatedKey>;
  list(): Promise<KeyView[]>;
  revoke(id: string): Promise<KeyView>;
}

const create = defineAction({
  summary: 'make a key for a tenant; it is shown this once',
  arguments: [{ name: 'TENANT', summary: 'A name under `tenants` of the configuration.' }],
  options: { name: { value: 'NAME', summary: 'What to call it, to tell it from others.' } },
  async run({ args: [tenant = ''], options, common, output }) {
    const made = await atDesk(common, (desk) => desk.create(tenant, options.name ?? ''));
    if (common.json) {
      output.json({ tenant: made.tenant, id: made.id, key: made.key });
      return;
    }
    output.print(made.key);
    output.note(`This is ${made.id} of tenant ${made.tenant}. It is shown this once: only its hash is kept.`);
  },
});

const ls = defineAction({
  summary: 'list the keys that were made, revoked ones too',
  async run({ common, output }) {
    const keys = await atDesk(common, (desk) => desk.list());
    if (common.json) output.json(keys);
    else if (keys.length === 0) output.note('No keys were made yet: armature keys create TENANT');
    else {
      const rows = keys.map((key) => [
        key.id,
        key.tenant,
        key.name || '-',
        key.createdAt,
        key.createdBy,
        key.revokedAt ?? '-',
      ]);
      output.print(table(['id', 'tenant', 'name', 'created', 'by', 'revoked'], rows));
    }
  },
});

const revoke = defineAction({
  summary: 'make a key worthless, at once',
  arguments: [{ name: 'ID', summary: 'As `keys ls` shows it, such as key_...' }],
  async run({ args: [id = ''], common, output }) {
    const key = await atDesk(common, (desk) => desk.revoke(id));
    if (common.json) output.json(key);
    else output.print(`${key.id} of tenant ${key.tenant} is revoked`);
  },
});

export const command: ActionGroup = { actions: { create, ls, revoke }, defaultAction: 'ls' };

/** A running Armature does the work; where none runs and nobody holds the data directory, it is done in the store itself. */
async function atDesk<Result>(
  common: CommonOptions,
  work: (desk: KeyDesk) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(await deskOfRunning(common));
  } catch (error) {
    const elsewhere = common.admin !== undefined || (!common.dataGiven && process.env.ARMATURE_ADMIN);
    if (!(error instanceof NotRunning) || elsewhere) throw error;
    const borrowed = await DataDir.borrow(resolve(common.data), () => inStore(common, work));
    if (borrowed) return borrowed.result;
    throw failed(
      `${error.message}, but an Armature holds the data directory ${common.data}: it is starting or leaving. Try again in a moment, or see its log`,
    );
  }
}

async function deskOfRunning(common: CommonOptions): Promise<KeyDesk> {
  const running = await findRunning(common);
  return {
    create: (tenant, name) => running.call('/api/v1/keys', { method: 'POST', body: { tenant, name } }),
    revoke: (id) => running.call(`/api/v1/keys/${encodeURIComponent(id)}`, { method: 'DELETE' }),
    list: () => allOf<KeyView>(running, '/api/v1/keys'),
  };
}

async function inStore<Result>(
  common: CommonOptions,
  work: (desk: KeyDesk) => Promise<Result>,
): Promise<Result> {
  const usual = resolve(common.data, 'state.db');
  const loaded = common.config !== undefined || !existsSync(usual) ? settingsOfFile(common) : undefined;
  let store: Store | undefined;
  try {
    store = sqliteStore({ path: loaded ? storePath(common, loaded) : usual, clock: systemClock });
    const tenants = loaded ? loaded.tenants : await lastTenants(store);
    const timing = { clock: systemClock, random: systemRandom };
    const keys = new TenantKeys({
      keys: store.keys,
      event: eventMaker(timing.clock, timing.random),
      ...timing,
      tenants: () => tenants,
      // Whoever runs Armature next reads the keys as it starts.
      onChange: () => undefined,
    });
    return await work({
      create: async (tenant, name) => orFail(await keys.create(tenant, name, 'operator')),
      revoke: async (id) => orFail(await keys.revoke(id, 'operator')),
      list: () => keys.list(),
    });
  } catch (error) {
    if (error instanceof StoreError) throw failed(`the keys cannot be kept: ${error.message}`);
    throw error;
  } finally {
    await store?.close();
  }
}

function settingsOfFile(common: CommonOptions): Settings {
  const file = common.config ?? CONFIG_FILE;
  if (common.config === undefined && !existsSync(file)) {
    throw askedWrongly(
      `no Armature runs, none has run with the data directory ${common.data}, and there is no ${CONFIG_FILE} here to name the tenants. Say which with -c FILE`,
    );
  }
  const loaded = loadConfig(file);
  if (!loaded.ok) throw askedWrongly(`${file} cannot be used:\n${formatFaults(loaded.faults)}`);
  return loaded.config.settings;
}

function storePath(common: CommonOptions, settings: Settings): string {
  const { url } = settings.store;
  if (!url.startsWith('sqlite:')) throw failed(`the keys are kept at a database; start Armature first`);
  return resolve(common.data, url.slice('sqlite:'.length));
}

/** Those of the configuration that ran last. */
async function lastTenants(store: Store): Promise<Settings['tenants']> {
  const last = await store.snapshots.last();
  return (last?.settings as Settings | undefined)?.tenants;
}

/** A refusal of what was asked is the asker's to mend. */
function orFail<Result extends object>(result: Result | Failure): Result {
  if (!('phase' in result)) return result;
  throw failed(result.message);
}
