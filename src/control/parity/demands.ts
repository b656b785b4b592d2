import type { Fault } from '../../config/faults.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Gate } from '../../releases/contracts.ts';
import type { Standing } from '../../releases/parity/contracts.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ParityControl } from './contracts.ts';
import { referenceOf } from './reference.ts';
import type { ParityService } from './service.ts';

/** A target of a route that demands parity, and how it stands. */
interface Demanded {
  route: string;
  reference: string;
  backend: string;
  require: 'refuse' | 'flag';
  standing: Standing;
}

export interface DemandsOptions {
  ledger: LedgerService;
  log: Logger;
  parity: ParityService;
}

const WHY: Record<Extract<Standing, { valid: false }>['why'], string> = {
  none: 'it was not compared yet',
  running: 'it is being compared',
  rejected: 'it was rejected',
  undecided: 'its last comparison decided nothing',
  expired: 'its certificate has expired',
};

/** Routes that demand a certificate of parity of their targets: what may be moved, and what is told of those that stand. */
export class Demands {
  readonly #options: DemandsOptions;
  /** Targets without a certificate that were told, by route and backend, with the reason. */
  readonly #told = new Map<string, string>();

  constructor(options: DemandsOptions) {
    this.#options = options;
  }

  /**
   * Why a configuration may not take the place of another: a backend begins to get traffic of a route that refuses what has no
   * certificate. What has traffic already keeps it, and is told.
   */
  objections(
    before: Settings,
    after: { settings: Settings; config: { certificates: Record<string, string> } },
    file: string,
  ): Fault[] {
    return demandedOf(after, this.#options.parity, (route) =>
      referenceAfter(route, before, after.settings),
    ).flatMap(({ route, reference, backend, require, standing }) => {
      if (standing.valid || require === 'flag' || weightOf(before, route, backend) > 0) return [];
      const targets = after.settings.routes[route]!.targets;
      const index = targets.findIndex((target) => target.backend === backend);
      return [
        {
          code: 'contradiction' as const,
          file,
          line: 0,
          column: 0,
          path: `routes.${route}.targets[${index}]`,
          message: `"${backend}" has no valid certificate of parity with "${reference}": ${WHY[standing.why]}`,
          hint: `armature parity run ${reference} ${backend} --golden ${after.settings.routes[route]!.parity!.golden}`,
        },
      ];
    });
  }

  /** Tells targets that answer callers without a certificate, each once for each reason. */
  tell(control: ParityControl): void {
    const { ledger, log, parity } = this.#options;
    const lacking = demandedOf(control.effective, parity).filter(({ standing }) => !standing.valid);
    const keys = new Set(lacking.map(({ route, backend }) => `${route}|${backend}`));
    for (const key of this.#told.keys()) if (!keys.has(key)) this.#told.delete(key);
    for (const { route, reference, backend, standing } of lacking) {
      const key = `${route}|${backend}`;
      if (standing.valid || this.#told.get(key) === standing.why) continue;
      this.#told.set(key, standing.why);
      const causes = standing.event === undefined ? [] : [standing.event];
      ledger.append({
        type: 'parity-missing',
        subject: `route:${route}`,
        causes: [...causes, control.snapshots.current.event],
        data: { route, reference, backend, for: `parity-${standing.why}` },
      });
      log.warn(
        { route, reference, backend, why: standing.why },
        'a target has no valid certificate of parity',
      );
    }
  }

  /** What a release to a backend has to pass where its route demands parity. */
  gate(control: () => ParityControl): Gate {
    const { parity, ledger } = this.#options;
    return {
      name: 'parity',
      applies: ({ route }) => control().effective.settings.routes[route]?.parity !== undefined,
      pass: async ({ release, route, backend }) => {
        const { effective } = control();
        const settings = effective.settings.routes[route];
        const demand = settings?.parity;
        if (!demand) throw new Error(`${route} demands no parity any more`);
        const reference = referenceOf(settings);
        const standing = standingOf(effective, parity, route, reference, backend);
        const figures = {
          reference,
          backend,
          for: standing.valid ? 'parity-certified' : `parity-${standing.why}`,
          certificate: standing.certificate ?? null,
        };
        const passed = standing.valid || demand.require === 'flag';
        const event = ledger.event({
          type: standing.valid ? 'parity-shown' : 'parity-missing',
          subject: `release:${release}`,
          causes: standing.event === undefined ? [] : [standing.event],
          data: { route, ...figures },
        });
        await ledger.store.ledger.append([event]);
        return { passed, reason: { code: event.type, figures: { route, ...figures } }, event: event.id };
      },
    };
  }
}

/** Every target with traffic of every route that demands parity, save the reference itself. */
function demandedOf(
  { settings, config }: ParityControl['effective'],
  parity: ParityService,
  referenceFor = (route: string) => referenceOf(settings.routes[route]!),
): Demanded[] {
  return Object.entries(settings.routes).flatMap(([route, of]) => {
    const reference = referenceFor(route);
    const demand = of.parity;
    if (!demand) return [];
    return of.targets
      .filter(({ backend, weight }) => weight > 0 && backend !== reference)
      .map(({ backend }) => ({
        route,
        reference,
        backend,
        require: demand.require,
        standing: standingOf({ settings, config }, parity, route, reference, backend),
      }));
  });
}

function standingOf(
  { settings, config }: ParityControl['effective'],
  parity: ParityService,
  route: string,
  reference: string,
  backend: string,
): Standing {
  const { golden, flipsMax } = settings.routes[route]!.parity!;
  return parity.standing(reference, backend, { sha256: config.certificates[golden] ?? '', flipsMax });
}

/**
 * What a change is held against. Where the settings name none, a backend that had no traffic of the route before does not become
 * the reference by standing first: else it would be let in by taking the place of what it is to be compared with.
 */
function referenceAfter(route: string, before: Settings, after: Settings): string {
  const [old, of] = [before.routes[route], after.routes[route]!];
  const reference = referenceOf(of);
  const isNew = of.parity?.reference === undefined && weightOf(before, route, reference) === 0;
  return old && isNew ? referenceOf(old) : reference;
}

function weightOf({ routes }: Settings, route: string, backend: string): number {
  return routes[route]?.targets.find((target) => target.backend === backend)?.weight ?? 0;
}
