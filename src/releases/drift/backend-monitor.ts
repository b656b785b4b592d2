import type { Random } from '../../kernel/random.ts';
import type { Finding, Value } from './contracts.ts';
import { FeatureMonitor, type FeatureReport, type FeatureSettings } from './feature-monitor.ts';
import { type Incident, type IncidentRules, Incidents } from './incidents.ts';
import { type QualityReport, type QualitySettings, QualityWatch } from './quality-watch.ts';

export interface MonitorSettings {
  features: FeatureSettings[];
  /** Where answers tell how sure they are. */
  quality?: QualitySettings | undefined;
  incidents: IncidentRules;
}

/** What is told of the answers of one backend on one route. */
export type Notice =
  | { notice: 'frozen'; feature: string; rows: number; watched: boolean }
  | { notice: 'detected'; finding: Finding; open: (event: string) => void }
  | { notice: 'confirmed' | 'passed'; incident: Incident };

export interface MonitorReport {
  rows: number;
  features: FeatureReport[];
  quality: QualityReport | undefined;
  incident: Incident | undefined;
  /** Findings that were not told as it was too soon after the incident before. */
  held: number;
}

interface State {
  rows: number;
  features: Record<string, unknown>;
  quality?: unknown;
  incidents: unknown;
}

/** The event of the incident that is open in the stored state of a monitor, whatever its settings were. */
export function incidentIn(state: unknown): string | undefined {
  return (state as { incidents?: { open?: Incident } } | undefined)?.incidents?.open?.event;
}

/** Watches what one backend answers on one route: every feature, and at most one incident. JSON state, no I/O. */
export class BackendMonitor {
  readonly #features: Map<string, FeatureMonitor>;
  readonly #quality: QualityWatch | undefined;
  readonly #incidents: Incidents;
  #rows = 0;

  constructor({ features, quality, incidents }: MonitorSettings) {
    this.#features = new Map(features.map((each) => [each.name, new FeatureMonitor(each)]));
    this.#quality = quality && new QualityWatch(quality);
    this.#incidents = new Incidents(incidents);
  }

  /** Values of one answer by feature; a feature that is not named has nothing to do with it. */
  observe(values: Readonly<Record<string, Value>>, wallMs: number, random: Random): Notice[] {
    this.#rows++;
    const notices: Notice[] = [];
    for (const [name, feature] of this.#features) {
      const value = values[name];
      if (value === undefined) continue;
      const was = feature.isFrozen;
      const finding = feature.observe(value, wallMs, random);
      if (feature.isFrozen && !was) {
        const { referenceRows, state } = feature.report(random);
        notices.push({ notice: 'frozen', feature: name, rows: referenceRows, watched: state === 'watching' });
      }
      if (finding) this.#found(finding, feature.rows, wallMs, notices);
    }
    this.#age(wallMs, notices);
    return notices;
  }

  /** A score of 0 to 1: how sure an answer was. */
  answered(score: number): void {
    this.#quality?.answered(score);
  }

  /** Whether an answer with that score was right. */
  labelled(score: number, right: boolean, wallMs: number): Notice[] {
    const notices: Notice[] = [];
    const finding = this.#quality?.labelled(score, right);
    if (finding) this.#found(finding, this.#quality!.labels, wallMs, notices);
    this.#age(wallMs, notices);
    return notices;
  }

  #found(finding: Finding, rows: number, wallMs: number, notices: Notice[]): void {
    if (!this.#incidents.found(finding, wallMs)) return;
    const open = (event: string) => this.#incidents.opened(event, finding, rows, wallMs);
    notices.push({ notice: 'detected', finding, open });
  }

  #age(wallMs: number, notices: Notice[]): void {
    const incident = this.#incidents.open;
    if (!incident) return;
    const { feature, change } = incident.first;
    const rows =
      change === 'calibration' ? (this.#quality?.labels ?? 0) : (this.#features.get(feature)?.rows ?? 0);
    const became = this.#incidents.aged(rows, wallMs);
    if (!became) return;
    notices.push({ notice: became, incident });
    if (became === 'passed') this.#incidents.end(wallMs);
  }

  get rows(): number {
    return this.#rows;
  }

  get incident(): Incident | undefined {
    return this.#incidents.open;
  }

  report(random: Random): MonitorReport {
    return {
      rows: this.#rows,
      features: [...this.#features.values()].map((feature) => feature.report(random)),
      quality: this.#quality?.report(random),
      incident: this.#incidents.open,
      held: this.#incidents.held,
    };
  }

  toJSON(): State {
    return {
      rows: this.#rows,
      features: Object.fromEntries([...this.#features].map(([name, each]) => [name, each.toJSON()])),
      ...(this.#quality && { quality: this.#quality.toJSON() }),
      incidents: this.#incidents.toJSON(),
    };
  }

  restore({ rows, features, quality, incidents }: State): void {
    this.#rows = rows;
    for (const [name, feature] of this.#features) {
      const state = features[name];
      if (state) feature.restore(state as never);
    }
    if (quality) this.#quality?.restore(quality as never);
    this.#incidents.restore(incidents as never);
  }
}
