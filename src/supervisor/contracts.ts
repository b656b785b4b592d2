import type { PartSpec } from '../links/messages.ts';

/** How a part ended; both null where that cannot be known, as with parts that another supervisor started. */
export interface Exit {
  exitCode: number | null;
  signal: string | null;
}

/** A part that runs. */
export interface Launched {
  readonly pid: number;
  /** Called once, when it has ended. */
  onExit: ((exit: Exit) => void) | undefined;
  signal(name: NodeJS.Signals): void;
}

/** Where parts run: as child processes of this machine, and later under a node's agent, Kubernetes or Slurm. */
export interface Launcher {
  /** Never throws: what cannot be started ends at once. */
  launch(spec: PartSpec): Launched;
}
