import { nearest } from '../../config/nearest.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { LedgerEvent } from '../../events/contracts.ts';
import type { EventDraft } from '../../events/event-maker.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Failure } from '../../kernel/errors.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import type { Keys, StoredKey } from '../../store/contracts.ts';
import { hashOf, newKey } from './key.ts';

const NAME_LENGTH_MAX = 200;

/** A key as it is shown: never the key, nor its hash. */
export type KeyView = Omit<StoredKey, 'hash'>;

/** Shown once, to whoever made it. */
export interface CreatedKey {
  tenant: string;
  id: string;
  key: string;
}

export interface TenantKeysOptions {
  keys: Keys;
  /** Makes events; see eventMaker. */
  event: (draft: EventDraft) => LedgerEvent;
  clock: Clock;
  random: Random;
  /** The tenants of the running configuration; undefined where none are configured. */
  tenants: () => Settings['tenants'];
  /** Puts a change into effect; awaited before the change is reported done. `event` is its cause. */
  onChange: (event: LedgerEvent) => Promise<void> | void;
}

/** Tenants' keys. Every change is on the disk, with its event, before it acts. */
export class TenantKeys {
  readonly #options: TenantKeysOptions;
  readonly #makeId: (wallMs: number) => string;

  constructor(options: TenantKeysOptions) {
    this.#options = options;
    this.#makeId = idMaker('key', options.random);
  }

  /** Gives the new key, this one time. Rejects with a StoreError where it cannot be kept. */
  async create(tenant: string, name: string, actor: string): Promise<CreatedKey | Failure> {
    const refused = this.#refusal(tenant, name);
    if (refused) return refused;
    const key = newKey();
    const id = this.#makeId(this.#options.clock.wall());
    const event = this.#options.event({
      type: 'key-created',
      subject: `key:${id}`,
      actor,
      data: { key: id, tenant, ...(name === '' ? {} : { name }) },
    });
    const stored = { id, tenant, name, hash: hashOf(key), createdAt: event.at, createdBy: actor };
    await this.#options.keys.create(stored, event);
    await this.#options.onChange(event);
    return { tenant, id, key };
  }

  /** Rejects with a StoreError where it cannot be written down. */
  async revoke(id: string, actor: string): Promise<KeyView | Failure> {
    const key = await this.#options.keys.get(id);
    if (!key)
      return notFound(
        id,
        fileKeys(this.#options.tenants()).some((it) => it.id === id),
      );
    if (key.revokedAt !== undefined) return viewOf(key);
    const event = this.#options.event({
      type: 'key-revoked',
      subject: `key:${id}`,
      actor,
      data: { key: id, tenant: key.tenant, ...(key.name === '' ? {} : { name: key.name }) },
    });
    if (await this.#options.keys.revoke(id, event)) await this.#options.onChange(event);
    return viewOf({ ...key, revokedAt: event.at });
  }

  /** Keys that were created, revoked ones too, oldest first. Those of the file are not among them. */
  async list(): Promise<KeyView[]> {
    return (await this.#options.keys.list()).map(viewOf);
  }

  #refusal(tenant: string, name: string): Failure | undefined {
    const tenants = this.#options.tenants();
    if (tenants === undefined) {
      return invalid(`no tenants are configured, so that nobody needs a key; add '${tenant}' under tenants`);
    }
    if (!Object.hasOwn(tenants, tenant)) {
      const near = nearest(tenant, Object.keys(tenants));
      return invalid(
        `there is no tenant '${tenant}'${near === undefined ? '' : `; did you mean '${near}'?`}`,
      );
    }
    return name.length > NAME_LENGTH_MAX
      ? invalid(`a key's name has at most ${NAME_LENGTH_MAX} characters`)
      : undefined;
  }
}

/** The keys that a snapshot carries: those of the file, and those created and not revoked, of tenants that exist. */
export async function liveKeys(
  keys: Keys,
  tenants: Settings['tenants'],
): Promise<{ id: string; tenant: string; hash: string }[]> {
  const live = (await keys.list()).filter(
    (key) => key.revokedAt === undefined && tenants !== undefined && Object.hasOwn(tenants, key.tenant),
  );
  return [...fileKeys(tenants), ...live.map(({ id, tenant, hash }) => ({ id, tenant, hash }))];
}

/** Keys of the file are known by the beginning of their hash. */
function fileKeys(tenants: Settings['tenants']): { id: string; tenant: string; hash: string }[] {
  return Object.entries(tenants ?? {}).flatMap(([tenant, { keys }]) =>
    keys.map(({ hash }) => ({
      id: `file_${hash.slice('sha256:'.length, 'sha256:'.length + 12)}`,
      tenant,
      hash,
    })),
  );
}

function viewOf({ hash: _hash, ...key }: StoredKey): KeyView {
  return key;
}

function invalid(message: string): Failure {
  return { code: 'invalid_request', message, phase: 'before-queue', shouldRetry: false };
}

function notFound(id: string, ofFile: boolean): Failure {
  const message = ofFile
    ? `the key ${id} stands in the configuration file; remove it there`
    : `there is no key '${id}'`;
  return { code: ofFile ? 'conflict' : 'not_found', message, phase: 'before-queue', shouldRetry: false };
}
