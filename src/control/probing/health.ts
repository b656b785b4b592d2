import type { Settings } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { Readings } from '../../links/messages.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type HealthChange, keyOf, type Probe, Prober, type ProbeTarget } from './prober.ts';
import { probeTargets } from './targets.ts';

export interface HealthOptions {
  clock: Clock;
  timers: Timers;
  random: Random;
  probe: Probe;
  ledger: LedgerService;
  log: Logger;
  /** Tells every worker. */
  tell: (readings: Readings) => void;
}

/**
 * How long workers go on with what an earlier control told them, while this one has not yet asked every endpoint often
 * enough: it would tell them to forget which are unwell.
 */
const LEARN_MS = 15_000;

/** What workers are told of health, whole each time. */
type Told = Required<Pick<Readings, 'health' | 'causes'>>;

/** What probes have found out of every endpoint: told to the workers, and in the ledger when it changes. */
export class Health {
  readonly #options: HealthOptions;
  readonly #prober: Prober;
  /** The event that told of each endpoint that is unwell. */
  readonly #causes = new Map<string, string>();
  #learned = false;
  readonly #learning: TimerHandle;

  constructor(options: HealthOptions) {
    this.#options = options;
    const { clock, timers, random, probe } = options;
    this.#prober = new Prober({
      clock,
      timers,
      random,
      probe,
      onChange: (change) => this.#changed(change),
      onMute: (target, status) => this.#mute(target, status),
    });
    this.#learning = timers.set(LEARN_MS, () => {
      this.#learned = true;
      this.#tell();
    });
  }

  /** From now on the endpoints of these settings are asked. */
  watch(settings: Settings): void {
    this.#prober.watch(probeTargets(settings));
    this.#tell();
  }

  /** What is known, by `BACKEND|ADDRESS`. */
  get known(): Told['health'] {
    return this.#prober.readings().health;
  }

  /** What workers are told; undefined while an earlier control knew more. */
  get readings(): Told | undefined {
    this.#learned ||= this.#prober.settled;
    if (!this.#learned) return undefined;
    const health = this.known;
    for (const key of this.#causes.keys()) if (health[key] !== 'unwell') this.#causes.delete(key);
    return { health, causes: Object.fromEntries(this.#causes) };
  }

  close(): void {
    this.#options.timers.clear(this.#learning);
    this.#prober.close();
  }

  #tell(): void {
    const readings = this.readings;
    if (readings) this.#options.tell(readings);
  }

  #changed({ backend, endpoint, health, figures }: HealthChange): void {
    const { log, ledger } = this.#options;
    // That an endpoint is as well as it was taken to be is no news.
    if (health === 'unwell' || figures.before !== 'unknown') {
      log.warn({ backend, endpoint, ...figures }, `endpoint ${health}`);
      const subject = `endpoint:${backend}|${endpoint}`;
      const { id } = ledger.append({ type: `endpoint-${health}`, subject, data: figures });
      this.#causes.set(keyOf({ backend, endpoint }), id);
    }
    this.#tell();
  }

  #mute({ backend, endpoint, url }: ProbeTarget, status: number): void {
    const hint = 'its health is judged by requests alone; set probe.path, or probe.off';
    this.#options.log.warn({ backend, endpoint, url, status }, `a probe is not answered: ${hint}`);
    const subject = `endpoint:${backend}|${endpoint}`;
    this.#options.ledger.append({ type: 'probe-refused', subject, data: { url, status, hint } });
    this.#tell();
  }
}
