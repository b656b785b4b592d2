import type { Observation } from '../../links/messages.ts';
import { type Documents, StoreError } from '../../store/contracts.ts';

/** What was predicted for one request, kept until its label comes. */
export interface Prediction {
  request: string;
  requestId?: string;
  route: string;
  backend: string;
  model: string;
  score: number;
  class?: string;
}

const PREDICTIONS_KIND = 'drift-predictions';
const CHUNK = 1000;
const CHUNKS_MAX = 20;

interface Chunk {
  number: number;
  predictions: Map<string, Prediction>;
  /** As it was stored last; 0 before. */
  revision: number;
  changed: boolean;
}

/** The last 20,000 predictions that were observed, in chunks that are stored as they fill. Each is labelled once. */
export class Predictions {
  readonly #documents: Documents;
  #chunks: Chunk[] = [];
  /** Stored chunks that were let go of, until the store has done so too: at most as many as are stored. */
  #gone: Chunk[] = [];
  /** By the caller's own id: the newest that has it. */
  readonly #byRequestId = new Map<string, string>();

  constructor(documents: Documents) {
    this.#documents = documents;
  }

  async load(): Promise<void> {
    for (const { id, body, revision } of await this.#documents.list(PREDICTIONS_KIND, CHUNKS_MAX * 2)) {
      const all = (body as { predictions: Prediction[] }).predictions;
      const predictions = new Map(all.map((each) => [each.request, each]));
      this.#chunks.push({ number: Number(id), predictions, revision, changed: false });
      for (const each of all) if (each.requestId) this.#byRequestId.set(each.requestId, each.request);
    }
    this.#chunks.sort((a, b) => a.number - b.number);
  }

  add({ request, requestId, route, backend, model, score, class: predicted }: Observation): void {
    if (score === undefined) return;
    let chunk = this.#chunks.at(-1);
    if (!chunk || chunk.predictions.size >= CHUNK) {
      chunk = { number: (chunk?.number ?? 0) + 1, predictions: new Map(), revision: 0, changed: true };
      this.#chunks.push(chunk);
    }
    chunk.predictions.set(request, {
      request,
      ...(requestId !== undefined && { requestId }),
      route,
      backend,
      model,
      score,
      ...(predicted !== undefined && { class: predicted }),
    });
    chunk.changed = true;
    if (requestId !== undefined) this.#byRequestId.set(requestId, request);
  }

  /** By Armature's id of the request, or the caller's own; it is given once. */
  take(id: string): Prediction | undefined {
    const request = this.#byRequestId.get(id) ?? id;
    for (let at = this.#chunks.length - 1; at >= 0; at--) {
      const chunk = this.#chunks[at]!;
      const found = chunk.predictions.get(request);
      if (!found) continue;
      chunk.predictions.delete(request);
      chunk.changed = true;
      this.#unname(found);
      return found;
    }
    return undefined;
  }

  #unname({ request, requestId }: Prediction): void {
    if (requestId !== undefined && this.#byRequestId.get(requestId) === request)
      this.#byRequestId.delete(requestId);
  }

  /** Stores what has changed, and lets go of the oldest. Rejects where it cannot be stored; then it is tried again. */
  async store(): Promise<void> {
    for (const chunk of this.#chunks.splice(0, Math.max(0, this.#chunks.length - CHUNKS_MAX))) {
      for (const each of chunk.predictions.values()) this.#unname(each);
      if (chunk.revision > 0) this.#gone.push(chunk);
    }
    const gone = this.#gone;
    const changes = [
      ...gone.map((chunk) => ({ chunk, body: undefined })),
      ...this.#chunks
        .filter(({ changed }) => changed)
        .map((chunk) => ({ chunk, body: { predictions: [...chunk.predictions.values()] } })),
    ];
    if (changes.length === 0) return;
    for (const { chunk } of changes) chunk.changed = false;
    try {
      await this.#documents.change(
        changes.map(({ chunk, body }) => ({
          kind: PREDICTIONS_KIND,
          id: String(chunk.number),
          on: chunk.revision,
          ...(body && { body }),
        })),
        [],
      );
      for (const { chunk } of changes) chunk.revision++;
      this.#gone = this.#gone.filter((chunk) => !gone.includes(chunk));
    } catch (error) {
      for (const { chunk } of changes) chunk.changed = true;
      // A control that was on its way out wrote last; what is known here is newer.
      if (error instanceof StoreError && error.trouble === 'conflict')
        await this.#reread(changes.map(({ chunk }) => chunk));
      throw error;
    }
  }

  async #reread(chunks: readonly Chunk[]): Promise<void> {
    for (const chunk of chunks)
      chunk.revision = (await this.#documents.get(PREDICTIONS_KIND, String(chunk.number)))?.revision ?? 0;
    this.#gone = this.#gone.filter(({ revision }) => revision > 0);
  }
}
