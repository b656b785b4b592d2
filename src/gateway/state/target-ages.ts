interface Weighted {
  backend: string;
  weight: number;
}

/**
 * Which target of a route came later: the one that had a weight above 0 later; of those that were there from the start, the one
 * that was raised while the other was lowered. Once it is known of two, it stays so while both have weight.
 */
export class TargetAges {
  #known: Map<string, { share: number; since: number }> | undefined;
  /** What was taken back last, until it is given more again. */
  takenBack: string | undefined;

  /**
   * To be called with the targets of each snapshot, whose numbers grow. `takenBack`: what a rollback has just taken sessions
   * from; it is no later than the rest, so that they go back also where it had a weight before.
   */
  observe(targets: readonly Weighted[], snapshot: number, takenBack?: string): void {
    const total = targets.reduce((sum, { weight }) => sum + weight, 0);
    const before = this.#known;
    const now = new Map<string, { share: number; since: number; rose: number }>();
    for (const { backend, weight } of targets) {
      if (weight <= 0) continue;
      const share = weight / total;
      const was = before?.get(backend);
      const since = was?.since ?? (before ? snapshot : 0);
      now.set(backend, { share, since, rose: was ? share - was.share : 0 });
    }
    const fell = new Set([...now.values()].filter(({ rose }) => rose < -1e-9).map(({ since }) => since));
    for (const each of now.values()) {
      if (each.rose <= 1e-9 || !fell.has(each.since)) continue;
      // Later than those that it was level with, and still before whatever came with the next snapshot.
      each.since = Math.floor(each.since) + snapshot / (snapshot + 1);
    }
    this.#takeBack(now, takenBack);
    this.#known = now;
  }

  #takeBack(now: Map<string, { since: number; rose: number }>, name: string | undefined): void {
    const before = this.takenBack === undefined ? undefined : now.get(this.takenBack);
    if (before && before.rose > 1e-9) this.takenBack = undefined;
    this.takenBack = name ?? this.takenBack;
    const taken = name === undefined ? undefined : now.get(name);
    if (taken) taken.since = Math.min(...[...now.values()].map(({ since }) => since));
  }

  /** Grows with how late it came; only comparing has a meaning. */
  since(backend: string): number {
    return this.#known?.get(backend)?.since ?? 0;
  }
}
