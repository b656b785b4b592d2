/** What answered a session's last request, as far as this worker knows. */
export interface SessionPlace {
  backend: string;
  model: string;
  /** Another target would have had it, had that been well. */
  stoodIn: boolean;
  /** The tier that it belongs to, and the one that answered; undefined where its route has none. */
  home: string | undefined;
  tier: string | undefined;
}

const SESSIONS_MAX = 20_000;

/** Where sessions were answered last: those that were heard of last, in the memory of one worker. */
export class SessionPlaces {
  readonly #places = new Map<string, SessionPlace>();

  of(key: string): SessionPlace | undefined {
    return this.#places.get(key);
  }

  put(key: string, place: SessionPlace): void {
    this.#places.delete(key);
    this.#places.set(key, place);
    if (this.#places.size > SESSIONS_MAX) this.#places.delete(this.#places.keys().next().value!);
  }
}
