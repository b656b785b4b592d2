import type { RegistryStore } from '../../store/registry.ts';
import type { Artifacts } from './artifacts/index.ts';
import type { OneAtATime } from './one-at-a-time.ts';

/** Leftovers that are in memory at one time. */
const PAGE = 100;

export interface LeftoversOptions {
  store: RegistryStore;
  artifacts: Artifacts;
  /** What is done with one content is done in its turn. */
  turns: OneAtATime;
  /** Told why a copy could not be removed; that is tried again. */
  onLeft: (error: unknown) => void;
}

/**
 * Copies of content that may lie where nothing names them. Each is noted on the disk before it can come to be, so that
 * whoever is started after a death finds it; nothing but what is noted is removed, since a bucket or a directory may hold
 * what others have put there.
 */
export class Leftovers {
  readonly #options: LeftoversOptions;
  /** Content of which copies are being made, and by how many: where it will be named is not known before they are done. */
  readonly #held = new Map<string, number>();

  constructor(options: LeftoversOptions) {
    this.#options = options;
  }

  /** To be called in the turn of the content, before a copy is made of it; `release` follows, whatever comes of it. */
  async hold(sha256: string): Promise<void> {
    await this.#options.store.addLeftover(sha256);
    this.#held.set(sha256, (this.#held.get(sha256) ?? 0) + 1);
  }

  /** Where it will be named is known: once nobody holds it, what is not named may go. */
  release(sha256: string): void {
    const others = this.#held.get(sha256)! - 1;
    if (others > 0) this.#held.set(sha256, others);
    else this.#held.delete(sha256);
  }

  /** Removes the copies of content that are not named, unless somebody holds it; what cannot be removed stays noted. */
  async tidy(sha256: string): Promise<void> {
    await this.#settle(sha256).catch(this.#options.onLeft);
  }

  /** The same for all that are noted; ends with the first that cannot be removed. */
  async tidyAll(): Promise<void> {
    try {
      for (let after: string | undefined; ; ) {
        const page = await this.#options.store.leftovers(PAGE, after);
        for (const sha256 of page) await this.#settle(sha256);
        if (page.length < PAGE) return;
        after = page.at(-1)!;
      }
    } catch (error) {
      this.#options.onLeft(error);
    }
  }

  async #settle(sha256: string): Promise<void> {
    const { store, artifacts, turns } = this.#options;
    // Looked at first, so as not to wait for whoever has its turn and is long about it.
    if (this.#held.has(sha256)) return;
    await turns.run(sha256, async () => {
      if (this.#held.has(sha256)) return;
      await artifacts.keepOnly(sha256, (await store.artifact(sha256))?.place);
      await store.removeLeftover(sha256);
    });
  }
}
