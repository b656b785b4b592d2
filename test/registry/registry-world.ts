import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventMaker } from '../../src/events/event-maker.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { VirtualTime } from '../../src/kernel/virtual-time.ts';
import {
  type ArtifactStore,
  Artifacts,
  directoryStore,
} from '../../src/releases/registry/artifacts/index.ts';
import { Registry } from '../../src/releases/registry/index.ts';
import { memoryStore } from '../../src/store/memory/index.ts';
import type { StoredVersion } from '../../src/store/registry.ts';

/** A registry over a store in memory and directories. */
export class RegistryWorld {
  readonly folder = mkdtempSync(join(tmpdir(), 'armature-registry-'));
  readonly time = new VirtualTime(1_700_000_000_000);
  readonly store = memoryStore();
  /** Asked before anything is put into a store; may throw. */
  beforePut: (key: string) => void | Promise<void> = () => {};
  /** The same before anything is removed from one. */
  beforeRemove: (key: string) => void | Promise<void> = () => {};
  /** Why copies could not be removed. */
  readonly left: unknown[] = [];
  registry: Registry;

  constructor() {
    this.registry = this.#start();
  }

  /** Another control over what the last one left, which does nothing any more. */
  restart(): void {
    this.beforePut = () => {};
    this.beforeRemove = () => {};
    this.registry = this.#start();
  }

  #start(): Registry {
    return new Registry({
      store: this.store.registry,
      event: eventMaker(this.time, seededRandom(1)),
      append: (event) => this.store.ledger.append([event]),
      clock: this.time,
      artifacts: new Artifacts({
        live: this.#watched(directoryStore(join(this.folder, 'live'))),
        archive: this.#watched(directoryStore(join(this.folder, 'archive'))),
        folder: this.folder,
      }),
      onLeft: (error) => this.left.push(error),
      usersOf: async () => [],
      usersOfAlias: () => [],
      decisionEvent: async () => undefined,
      cameOf: async (alarm) => alarm,
    });
  }

  #watched(inner: ArtifactStore): ArtifactStore {
    return {
      ...inner,
      put: async (key, path, progress) => {
        await this.beforePut(key);
        await inner.put(key, path, progress);
      },
      remove: async (key) => {
        await this.beforeRemove(key);
        await inner.remove(key);
      },
    };
  }

  async bring(content: Buffer): Promise<string> {
    const sha256 = createHash('sha256').update(content).digest('hex');
    await this.registry.content.add(sha256, 0, content);
    await last(this.registry.content.finish(sha256));
    return sha256;
  }

  async version(model: string, ...contents: Buffer[]): Promise<StoredVersion> {
    const files = [];
    for (const [index, content] of contents.entries())
      files.push({ path: `file-${index}`, sha256: await this.bring(content) });
    const manifest = { training: { unknown: 'made for a test' } };
    return this.registry.add({ model, manifest, files, allowPickle: false }, 'operator');
  }

  files(part: 'live' | 'archive' | 'moving' | 'incoming'): string[] {
    try {
      const found = readdirSync(join(this.folder, part), { recursive: true, withFileTypes: true });
      return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    } catch {
      return []; // it is not made before it is needed
    }
  }
}

export async function last<Step>(steps: AsyncGenerator<Step>): Promise<Step | undefined> {
  let found: Step | undefined;
  for await (const step of steps) found = step;
  return found;
}
