import type { Random } from '../../kernel/random.ts';
import { BackendMonitor } from '../../releases/drift/backend-monitor.ts';
import { type DriftSettings, monitorSettings } from '../../releases/drift/settings.ts';

/** How a hook was told of an incident. */
export interface HookState {
  state: 'running' | 'asked' | 'failed';
  attempts: number;
  job?: string;
  error?: string;
  /** The event that tells of it. */
  event?: string;
}

/** A route's backend that is watched, as it is stored. */
export interface WatchedDocument {
  route: string;
  backend: string;
  model: string;
  /** JSON of the settings that the monitor was made by. */
  settings: string;
  monitor: unknown;
  hook?: HookState;
}

/** One backend of one route: its monitor, and what is kept of it. */
export class Watched {
  readonly route: string;
  readonly backend: string;
  readonly model: string;
  settings: DriftSettings;
  readonly monitor: BackendMonitor;
  hook: HookState | undefined;
  /** As it was stored last; 0 before. */
  revision = 0;
  changed = true;

  constructor(route: string, backend: string, model: string, settings: DriftSettings) {
    this.route = route;
    this.backend = backend;
    this.model = model;
    this.settings = settings;
    this.monitor = new BackendMonitor(monitorSettings(settings));
  }

  get key(): string {
    return keyOf(this.route, this.backend);
  }

  get document(): WatchedDocument {
    const { route, backend, model, monitor, hook } = this;
    return { route, backend, model, settings: watchedBy(this.settings), monitor, ...(hook && { hook }) };
  }

  restore({ monitor, hook }: WatchedDocument, revision: number): void {
    this.monitor.restore(monitor as never);
    this.hook = hook;
    this.revision = revision;
    this.changed = false;
  }

  view(random: Random) {
    const { route, backend, model, hook } = this;
    return { route, backend, model, ...this.monitor.report(random), hook };
  }
}

export const keyOf = (route: string, backend: string) => `${route}|${backend}`;

/** The settings with which another reference would have to be made; the others may change while it stays. */
export function watchedBy(settings: DriftSettings): string {
  return JSON.stringify(monitorSettings(settings));
}
