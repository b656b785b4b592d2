/**
 * Everything that a request (or a process) takes is taken through a scope and given back when the scope closes,
 * newest first, whatever the way out. Closing twice is harmless; what is added to a closed scope is given back at once.
 */
export class Scope {
  #releases: (() => void)[] | undefined = [];

  get closed(): boolean {
    return this.#releases === undefined;
  }

  /** Runs `release` when the scope closes. */
  add(release: () => void): void {
    if (this.#releases) this.#releases.push(release);
    else release();
  }

  close(): void {
    const releases = this.#releases;
    if (!releases) return;
    this.#releases = undefined;
    for (let i = releases.length - 1; i >= 0; i--) releases[i]!();
  }
}
