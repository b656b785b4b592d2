import type { Observation } from '../../links/messages.ts';
import type { Documents } from '../../store/contracts.ts';

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
  /** As it was stored last; undefined before. */
  revision: number;
  changed: boolean;
}

/** The last 20,000 predictions that were observed, in chunks that are stored as they fill. Each is labelled once. */
export class Predictions {
  readonly #documents: Documents;
  #chunks: Chunk[] = [];
  /** By the caller's own id. */
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
      if (found.requestId !== undefined) this.#byRequestId.delete(found.requestId);
      return found;
    }
    return undefined;
  }

  /** Stores what has changed, and lets go of the oldest. Rejects where it cannot be stored; then it is tried again. */
  async store(): Promise<void> {
    const gone = this.#chunks.splice(0, Math.max(0, this.#chunks.length - CHUNKS_MAX));
    for (const { predictions } of gone)
      for (const { requestId } of predictions.values()) if (requestId) this.#byRequestId.delete(requestId);
    const changes = [
      ...gone.filter(({ revision }) => revision > 0).map((chunk) => ({ chunk, body: undefined })),
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
    } catch (error) {
      for (const { chunk } of changes) chunk.changed = true;
      throw error;
    }
  }
}
