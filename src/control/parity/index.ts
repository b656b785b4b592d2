import { Counter, type Registry } from 'prom-client';
import type { ParitySurface } from '../../api/contracts.ts';
import type { Fault } from '../../config/faults.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { Gate } from '../../releases/contracts.ts';
import type { ParityControl } from './contracts.ts';
import { Demands } from './demands.ts';
import { Sentinels } from './sentinels.ts';
import { ParityService, type ParityServiceOptions } from './service.ts';
import { paritySurface } from './surface.ts';

/** Parity as control has it: certificates, the routes that demand them, and sentinels. */
export class Parity {
  readonly #service: ParityService;
  readonly #sentinels: Sentinels;
  readonly #demands: Demands;
  readonly surface: ParitySurface;
  /** For the releases of routes that demand parity. */
  readonly gate: Gate;
  #control: ParityControl | undefined;

  private constructor(options: ParityServiceOptions, service: ParityService) {
    this.#service = service;
    this.#sentinels = new Sentinels({ ...options, parity: service });
    this.#demands = new Demands({ ...options, parity: service });
    this.surface = paritySurface(service);
    this.gate = this.#demands.gate(() => service.reaching.control);
  }

  /** Reads what an earlier control left; nothing is asked before `begin`. Rejects with a StoreError. */
  static async open(options: ParityServiceOptions): Promise<Parity> {
    return new Parity(options, await ParityService.open(options));
  }

  begin(control: ParityControl): void {
    this.#control = control;
    this.#service.onChange = () => this.#demands.tell(control);
    this.#service.begin(control);
    this.settled();
  }

  /** The configuration that runs has changed. */
  settled(): void {
    if (!this.#control) return;
    this.#service.settled();
    this.#sentinels.settled();
    this.#demands.tell(this.#control);
  }

  /** Why a configuration may not take the place of another. */
  objections(
    before: Settings,
    after: { settings: Settings; config: { certificates: Record<string, string> } },
    file: string,
  ): Fault[] {
    return this.#demands.objections(before, after, file);
  }

  addMetrics(registry: Registry): void {
    const prompts = new Counter({
      name: 'armature_sentinel_prompts_total',
      help: 'Golden prompts of sentinels: answered, failed, or not sent for want of room.',
      labelNames: ['route', 'backend', 'outcome'],
      registers: [registry],
    });
    for (const [key, count] of this.#sentinels.counts) {
      const [route = '', backend = '', outcome = ''] = key.split('|');
      prompts.inc({ route, backend, outcome }, count);
    }
  }

  async close(): Promise<void> {
    await this.#sentinels.close();
    await this.#service.close();
  }
}
