import type { LedgerEvent } from '../../events/contracts.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Certificate, ParityFigures, ParityReason, Standing } from '../../releases/parity/contracts.ts';
import { PARITY_KIND } from './contracts.ts';

/** Certificates that are kept; beyond it the oldest ones that have ended go. */
const KEPT_MAX = 1000;

/** Why a comparison ended before it could come to a verdict: it takes nothing from an earlier one. */
const BROKEN_OFF: ReadonlySet<ParityReason> = new Set([
  'run-stopped',
  'run-interrupted',
  'answers-missing',
  'golden-unfit',
]);

const isMeasured = ({ state, reason }: Certificate): boolean =>
  state === 'ended' && reason !== undefined && !BROKEN_OFF.has(reason);

/** Of comparisons, newest first, the one that counts: the newest that was measured; the newest of all where none was. */
export function countingOf(comparisons: readonly Certificate[]): Certificate | undefined {
  return comparisons.find(isMeasured) ?? comparisons[0];
}

/** Every certificate of this Armature, as it is kept. What is not measured yet stands here as well. */
export class Certificates {
  readonly #ledger: LedgerService;
  readonly #all = new Map<string, { certificate: Certificate; revision: number }>();

  private constructor(ledger: LedgerService) {
    this.#ledger = ledger;
  }

  /** Rejects with a StoreError. */
  static async open(ledger: LedgerService): Promise<Certificates> {
    const certificates = new Certificates(ledger);
    for (const { id, body, revision } of await ledger.store.documents.list(PARITY_KIND, KEPT_MAX * 2))
      certificates.#all.set(id, { certificate: body as Certificate, revision });
    return certificates;
  }

  /** Newest first: ids sort by time. */
  get all(): Certificate[] {
    return [...this.#all.values()]
      .map(({ certificate }) => certificate)
      .sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  get(id: string): Certificate | undefined {
    return this.#all.get(id)?.certificate;
  }

  /** Keeps it as it is now, together with the event that tells of it. Rejects with a StoreError. */
  async keep(certificate: Certificate, event: LedgerEvent): Promise<void> {
    const { id } = certificate;
    const on = this.#all.get(id)?.revision ?? 0;
    const old = on === 0 ? this.#surplus() : [];
    const gone = old.map(({ id, revision }) => ({ kind: PARITY_KIND, id, on: revision }));
    await this.#ledger.store.documents.change(
      [{ kind: PARITY_KIND, id, body: certificate, on }, ...gone],
      [event],
    );
    for (const { id } of old) this.#all.delete(id);
    this.#all.set(id, { certificate, revision: on + 1 });
  }

  /** While it is measured: shown, and not kept. */
  progress(id: string, figures: ParityFigures): void {
    const kept = this.#all.get(id);
    if (kept) kept.certificate = { ...kept.certificate, figures };
  }

  /** Whether a backend stands in for a reference, by the newest certificate of these terms that has been measured. */
  standing(reference: string, backend: string, demand: { sha256: string; flipsMax: number }): Standing {
    const fitting = this.all.filter(
      (each) =>
        each.reference === reference &&
        each.backend === backend &&
        each.golden.sha256 === demand.sha256 &&
        each.flipsMax <= demand.flipsMax,
    );
    const newest = countingOf(fitting);
    if (!newest) return { valid: false, why: 'none' };
    const { id: certificate, state, verdict, expired, event = '' } = newest;
    if (state === 'running') return { valid: false, why: 'running', certificate };
    if (verdict === 'certified' && !expired) return { valid: true, certificate, event };
    const why = verdict === 'certified' ? 'expired' : (verdict ?? 'undecided');
    return { valid: false, why, certificate, event: expired?.event ?? event };
  }

  #surplus(): { id: string; revision: number }[] {
    const ended = this.all.filter(({ state }) => state === 'ended');
    return ended
      .slice(Math.max(0, ended.length - (this.#all.size - KEPT_MAX + 1)))
      .map(({ id }) => ({ id, revision: this.#all.get(id)!.revision }));
  }
}
