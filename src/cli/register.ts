import type { Command } from './command.ts';

export interface Entry {
  /** One line for `armature --help`. */
  summary: string;
  load(): Promise<{ command: Command }>;
}

/** Every command, in the order of `armature --help`. Adding one is a file beside this one and a line here. */
export const register: Record<string, Entry> = {
  up: { summary: 'run everything: gateway, control and model hosts', load: () => import('./up.ts') },
  ask: { summary: 'put a question to a running gateway', load: () => import('./ask.ts') },
  check: { summary: 'check a configuration file', load: () => import('./check.ts') },
  status: { summary: 'show routes, backends and workers at a glance', load: () => import('./status.ts') },
  why: { summary: 'tell why a request or an action went as it did', load: () => import('./why.ts') },
  events: { summary: 'print what happened, as JSON lines', load: () => import('./events.ts') },
  keys: { summary: 'make, list and revoke keys of tenants', load: () => import('./keys.ts') },
  sessions: {
    summary: 'conversations that are kept: list, show, export, remove',
    load: () => import('./sessions.ts'),
  },
  parity: {
    summary: 'whether two backends mean the same: compare, list, show',
    load: () => import('./parity.ts'),
  },
  drift: {
    summary: 'whether what comes in and goes out has changed: list, show, refreeze',
    load: () => import('./drift.ts'),
  },
  models: { summary: 'local models: what is here, fetch, remove', load: () => import('./models.ts') },
  release: {
    summary: 'move a route to another backend on evidence: start, status, promote, abort',
    load: () => import('./release.ts'),
  },
  registry: {
    summary: 'versions of models: add, list, alias, verify, archive, compare',
    load: () => import('./registry.ts'),
  },
  decide: {
    summary: 'record which engine, hardware and version was chosen, and why',
    load: () => import('./decide.ts'),
  },
  retire: {
    summary: 'take a backend, a route or a version out of service: plan, drain, prove, undo, finish',
    load: () => import('./retire.ts'),
  },
  bench: { summary: 'put a load on an address and measure it', load: () => import('./bench.ts') },
  sim: { summary: 'run a configuration against a load in virtual time', load: () => import('./sim.ts') },
  completion: { summary: 'print completions for a shell', load: () => import('./completion.ts') },
};
