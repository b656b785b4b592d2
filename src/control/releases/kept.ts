import type { LedgerEvent } from '../../events/contracts.ts';
import type { Documents } from '../../store/contracts.ts';
import { RELEASE_KIND, type ReleaseDocument } from './contracts.ts';

/** What is to be different; undefined takes a member out. */
export type ReleaseChange = { [Name in keyof ReleaseDocument]?: ReleaseDocument[Name] | undefined };

/** A release's document, as it was stored last. Whoever changes it does so in turns. */
export class KeptRelease {
  readonly id: string;
  readonly #documents: Documents;
  #body: ReleaseDocument;
  #revision: number;

  /** `revision` 0: it is not stored yet. */
  constructor(documents: Documents, id: string, body: ReleaseDocument, revision: number) {
    this.#documents = documents;
    this.id = id;
    this.#body = body;
    this.#revision = revision;
  }

  get body(): Readonly<ReleaseDocument> {
    return this.#body;
  }

  /** Stored together with the events that tell of it, or not at all: rejects with a StoreError. */
  async store(change: ReleaseChange, events: readonly LedgerEvent[]): Promise<void> {
    const members = Object.entries({ ...this.#body, ...change }).filter(([, value]) => value !== undefined);
    const body = Object.fromEntries(members) as unknown as ReleaseDocument;
    const changes = [{ kind: RELEASE_KIND, id: this.id, body, on: this.#revision }];
    await this.#documents.change(changes, events);
    this.#body = body;
    this.#revision++;
  }
}
