import { ApiFault } from '../../api/contracts.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import { pause, type TimerHandle, type Timers } from '../../kernel/timers.ts';
import type { Certificate, ExpiryCause, Fingerprint, Standing } from '../../releases/parity/contracts.ts';
import { changeSince, settingsOf } from '../../releases/parity/fingerprint.ts';
import { GoldenFault, type GoldenSet, readGolden } from '../../releases/parity/golden.ts';
import { type Measured, measure } from '../../releases/parity/measuring.ts';
import { ParityTally } from '../../releases/parity/tally.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Asker } from './asker.ts';
import { Certificates } from './certificates.ts';
import type { ParityControl } from './contracts.ts';
import { asking, placesOf, type Reaching } from './reach.ts';
import { Room } from './room.ts';
import { toldBy } from './told.ts';

export interface ParityServiceOptions {
  ledger: LedgerService;
  clock: Clock;
  timers: Timers;
  random: Random;
  log: Logger;
  /** What a backend's `version` is now: an alias may move. Absent where nobody keeps versions. */
  versionOf?: (backend: string) => Promise<{ version?: string } | undefined>;
}

/** What is asked for when two backends are compared. */
export interface ParityAsked {
  reference: string;
  backend: string;
  golden: { name: string; text: string };
  flipsMax: number;
  alpha: number;
  together: number;
  /** How long a certificate holds, in milliseconds. */
  ageMs: number;
}

const RUNNING_MAX = 4;
/** How often what endpoints tell of themselves is read again where certificates hang on it. */
const LOOK_MS = 60_000;
/** Fingerprints of answers that are kept of one side. */
const SEEN_MAX = 20;
const KEEP_RETRY_MS = 5000;

/** Compares backends, keeps certificates of it, and ends them when what they were given for is no more. */
export class ParityService {
  readonly certificates: Certificates;
  /** Told when a certificate has come, or holds no more. */
  onChange: (() => void) | undefined;
  readonly #options: ParityServiceOptions;
  readonly #makeId: (wallMs: number) => string;
  readonly #running = new Map<string, AbortController>();
  /** Certificates that are being ended. */
  readonly #expiring = new Set<string>();
  readonly #asker: Asker;
  readonly #room: Room;
  #control: ParityControl | undefined;
  #look: TimerHandle;
  #closed = false;

  private constructor(options: ParityServiceOptions, certificates: Certificates) {
    this.#options = options;
    this.certificates = certificates;
    this.#makeId = idMaker('par', options.random);
    this.#asker = new Asker(options.timers);
    this.#room = new Room(options.clock);
  }

  /** Reads what an earlier control left. Rejects with a StoreError. */
  static async open(options: ParityServiceOptions): Promise<ParityService> {
    return new ParityService(options, await Certificates.open(options.ledger));
  }

  /** What was being measured when an earlier control died is told as interrupted. */
  begin(control: ParityControl): void {
    this.#control = control;
    for (const certificate of this.certificates.all) {
      if (certificate.state !== 'running') continue;
      const { figures } = certificate;
      this.#settle(this.#end(certificate, { verdict: 'undecided', reason: 'run-interrupted', figures }));
    }
    this.#lookLater();
  }

  /** What golden prompts are sent by. */
  get reaching(): Reaching {
    if (!this.#control) throw new Error('parity has not begun');
    return { control: this.#control, timers: this.#options.timers, asker: this.#asker, room: this.#room };
  }

  /** Begins to measure; what comes of it is in its certificate. Throws an ApiFault where that cannot be. */
  async start(asked: ParityAsked, actor: string): Promise<Certificate> {
    const golden = this.#checked(asked);
    const { ledger, clock } = this.#options;
    const { reference, backend, flipsMax, alpha, together } = asked;
    const nowMs = clock.wall();
    const certificate: Certificate = {
      id: this.#makeId(nowMs),
      at: new Date(nowMs).toISOString(),
      actor,
      reference,
      backend,
      golden: { name: asked.golden.name, sha256: golden.sha256, prompts: golden.prompts.length },
      flipsMax,
      alpha,
      together,
      state: 'running',
      figures: new ParityTally({ flipsMax, alpha }).figures,
    };
    const started = ledger.event({
      type: 'parity-started',
      subject: `parity:${certificate.id}`,
      actor,
      data: { reference, backend, golden: asked.golden.name, prompts: golden.prompts.length, flipsMax },
    });
    const stop = new AbortController();
    this.#running.set(certificate.id, stop);
    try {
      await this.certificates.keep(certificate, started);
    } catch (error) {
      this.#running.delete(certificate.id);
      throw error;
    }
    this.#settle(this.#run(certificate, golden, asked.ageMs, started.id, stop.signal));
    return certificate;
  }

  /** False where it does not run. */
  stop(id: string): boolean {
    const running = this.#running.get(id);
    running?.abort();
    return running !== undefined;
  }

  standing(reference: string, backend: string, demand: { sha256: string; flipsMax: number }): Standing {
    return this.certificates.standing(reference, backend, demand);
  }

  /** The configuration has changed: certificates of what is another now end. */
  settled(): void {
    this.#asker.renew();
    if (this.#control) this.#settle(this.#lookAtSettings(this.#control.snapshots.current.event));
  }

  /** Ends the certificates that a backend has, whichever side it is on. */
  async doubt(backend: string, causes: string[], what: string): Promise<void> {
    for (const certificate of this.#valid) {
      if (certificate.reference === backend || certificate.backend === backend)
        await this.expire(certificate, 'sentinel', causes, what);
    }
  }

  /** An answer came with a `system_fingerprint`, which where it is told stands for the engine and its settings. */
  async answeredAs(backend: string, fingerprint: string): Promise<void> {
    for (const certificate of this.#valid) {
      for (const side of ['reference', 'backend'] as const) {
        const then = certificate.fingerprints?.[side].answers ?? [];
        if (certificate[side] !== backend || then.length === 0 || then.includes(fingerprint)) continue;
        const what = `an answer came with system_fingerprint ${fingerprint}, and with ${then.join(' or ')} then`;
        await this.expire(certificate, `${side}-changed`, [], what);
      }
    }
  }

  async expire(certificate: Certificate, cause: ExpiryCause, causes: string[], what?: string): Promise<void> {
    const { ledger, clock, log } = this.#options;
    const { id, reference, backend, event } = certificate;
    if (this.#expiring.has(id) || this.certificates.get(id)?.expired) return;
    this.#expiring.add(id);
    const expiry = ledger.event({
      type: 'parity-expired',
      subject: `parity:${id}`,
      causes: [...(event === undefined ? [] : [event]), ...causes],
      data: { reference, backend, for: cause, ...(what !== undefined && { what }) },
    });
    const at = new Date(clock.wall()).toISOString();
    const expired = { at, cause, event: expiry.id, ...(what !== undefined && { what }) };
    await this.certificates
      .keep({ ...certificate, expired }, expiry)
      .finally(() => this.#expiring.delete(id));
    log.warn({ certificate: id, reference, backend, cause, what }, 'a certificate of parity has expired');
    this.onChange?.();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#options.timers.clear(this.#look);
    for (const running of this.#running.values()) running.abort();
    await this.#asker.close();
  }

  get #valid(): Certificate[] {
    return this.certificates.all.filter(({ verdict, expired }) => verdict === 'certified' && !expired);
  }

  #checked({ reference, backend, golden }: ParityAsked): GoldenSet {
    const { backends } = this.reaching.control.effective.settings;
    for (const name of [reference, backend]) {
      if (!Object.hasOwn(backends, name))
        throw new ApiFault(404, 'not_found', `There is no backend '${name}'.`);
    }
    if (this.#running.size >= RUNNING_MAX)
      throw new ApiFault(409, 'conflict', `At most ${RUNNING_MAX} comparisons run at one time.`);
    try {
      return readGolden(golden.text);
    } catch (error) {
      if (!(error instanceof GoldenFault)) throw error;
      throw new ApiFault(400, 'invalid_request', `${golden.name}: ${error.message}`);
    }
  }

  async #run(
    certificate: Certificate,
    { prompts }: GoldenSet,
    ageMs: number,
    cause: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { id, reference, backend, flipsMax, alpha, together } = certificate;
    const seen = { reference: new Set<string>(), backend: new Set<string>() };
    const ask = (side: 'reference' | 'backend') =>
      asking(certificate[side], cause, this.reaching, ({ fingerprint }) => {
        if (fingerprint !== undefined && seen[side].size < SEEN_MAX) seen[side].add(fingerprint);
      });
    const before = await this.#fingerprints(reference, backend);
    const measured = await measure({
      prompts,
      reference: ask('reference'),
      backend: ask('backend'),
      terms: { flipsMax, alpha },
      together,
      random: this.#options.random,
      signal,
      onProgress: (figures) => this.certificates.progress(id, figures),
    }).catch((error: unknown): Measured => {
      if (!(error instanceof GoldenFault)) throw error;
      this.#options.log.warn({ certificate: id, err: error }, 'a golden set does not fit the answers');
      return { verdict: 'undecided', reason: 'golden-unfit', figures: this.certificates.get(id)!.figures };
    });
    // One that changed meanwhile was not measured as what it is now.
    const fingerprints = await this.#fingerprints(reference, backend);
    const changed = (['reference', 'backend'] as const).some((side) => {
      const { settings, told } = fingerprints[side];
      // An idle host told nothing yet.
      return changeSince(before[side], settings, before[side].told.length > 0 ? told : []) !== undefined;
    });
    for (const side of ['reference', 'backend'] as const) fingerprints[side].answers = [...seen[side]].sort();
    const until = new Date(this.#options.clock.wall() + ageMs).toISOString();
    const outcome: Measured = changed
      ? { ...measured, verdict: 'undecided', reason: 'changed-meanwhile' }
      : measured;
    const more = outcome.verdict === 'certified' ? { fingerprints, until } : { fingerprints };
    await this.#end({ ...certificate, ...more }, outcome, cause);
  }

  async #end(
    certificate: Certificate,
    { verdict, reason, figures }: Measured,
    cause?: string,
  ): Promise<void> {
    const { ledger, clock, log } = this.#options;
    if (this.#closed) return; // the next control tells that it was interrupted
    const { id, reference, backend, golden, flipsMax } = certificate;
    const { prompts, flips, floorFlips, flipsAtMost, nearTies, screened } = figures;
    const leftOut = screened ? screened.differ + screened.nearTies : 0;
    const told = ledger.event({
      type: `parity-${verdict}`,
      subject: `parity:${id}`,
      causes: cause === undefined ? [] : [cause],
      data: {
        reference,
        backend,
        rule: reason,
        golden: golden.name,
        prompts,
        flips,
        floorFlips,
        nearTies,
        ...(leftOut > 0 && { leftOut }),
        flipsAtMost,
        flipsMax,
        figures,
      },
    });
    const endedAt = new Date(clock.wall()).toISOString();
    const ended = {
      ...certificate,
      state: 'ended',
      verdict,
      reason,
      figures,
      event: told.id,
      endedAt,
    } as const;
    await this.#kept(() => this.certificates.keep(ended, told));
    this.#running.delete(id);
    this.onChange?.();
    log.info({ certificate: id, reference, backend, verdict, reason, prompts, flips }, 'parity was measured');
  }

  /** What was measured is not lost while the store cannot be written. */
  async #kept(keep: () => Promise<void>): Promise<void> {
    const { timers, log } = this.#options;
    while (!this.#closed) {
      try {
        await keep();
        return;
      } catch (error) {
        log.warn({ err: error }, 'what was measured cannot be kept; trying again');
        await pause(timers, KEEP_RETRY_MS);
      }
    }
  }

  async #fingerprints(
    reference: string,
    backend: string,
  ): Promise<Record<'reference' | 'backend', Fingerprint>> {
    return { reference: await this.#fingerprint(reference), backend: await this.#fingerprint(backend) };
  }

  async #fingerprint(backend: string): Promise<Fingerprint> {
    const { control, timers } = this.reaching;
    const told = await Promise.all(placesOf(backend, control).map((place) => toldBy(place, timers)));
    const known = told.filter((each) => each !== undefined);
    return { settings: await this.#settingsOf(backend), told: [...new Set(known)].sort() };
  }

  async #lookAtSettings(cause: string): Promise<void> {
    for (const certificate of this.#valid) {
      for (const side of ['reference', 'backend'] as const) {
        const then = certificate.fingerprints?.[side];
        const what = then && changeSince(then, await this.#settingsOf(certificate[side]), []);
        if (what === undefined) continue;
        await this.expire(certificate, `${side}-changed`, [cause], what);
        break;
      }
    }
  }

  /** Its settings, and the version that it names, by its number. */
  async #settingsOf(backend: string): Promise<Fingerprint['settings']> {
    const settings = settingsOf(backend, this.reaching.control.effective.settings);
    const version = (await this.#options.versionOf?.(backend))?.version;
    return version === undefined ? settings : { ...settings, version };
  }

  #lookLater(): void {
    this.#look = this.#options.timers.set(LOOK_MS, () => {
      this.#settle(this.#lookAgain());
    });
  }

  /** Ends certificates that are too old, or whose endpoints tell something else of themselves. */
  async #lookAgain(): Promise<void> {
    try {
      const known = new Map<string, Promise<Fingerprint>>();
      for (const certificate of this.#valid) {
        if (this.#closed) return;
        if (Date.parse(certificate.until!) <= this.#options.clock.wall()) {
          await this.expire(certificate, 'too-old', []);
          continue;
        }
        for (const side of ['reference', 'backend'] as const) {
          const then = certificate.fingerprints?.[side];
          const name = certificate[side];
          if (!known.has(name)) known.set(name, this.#fingerprint(name));
          const now = await known.get(name)!;
          const what = then && changeSince(then, now.settings, now.told);
          if (what === undefined) continue;
          await this.expire(certificate, `${side}-changed`, [], what);
          break;
        }
      }
    } finally {
      if (!this.#closed) this.#lookLater();
    }
  }

  /** What goes wrong beside the answer to whoever asked is told in the log. */
  #settle(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (!this.#closed) this.#options.log.error({ err: error }, 'parity could not be measured or kept');
    });
  }
}
