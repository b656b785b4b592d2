/** Which folder of src may import which: one way, and between planes only through their contracts. */

const LAYERS: readonly (readonly string[])[] = [
  ['kernel'],
  ['config', 'events', 'store', 'telemetry', 'links'],
  ['protocols', 'policies'],
  [
    'supervisor',
    'gateway',
    'backends',
    'hosts',
    'pipelines',
    'sessions',
    'releases',
    'fleet',
    'simulation',
    'load',
  ],
  ['control', 'api', 'cli'],
];

/** What a folder shows to others of its own layer. */
const DOORS = [
  // Contracts, and the register of its modules.
  /^src\/[a-z]+\/(contracts|register)\.ts$/,
  // The schema that everybody's settings come from, and what travels between the processes.
  /^src\/config\/schema\/index\.ts$/,
  /^src\/links\/messages\.ts$/,
  // The simulated accelerator: the simulation turns it in virtual time, the sim host serves it.
  /^src\/simulation\/accelerator\/accelerator\.ts$/,
  // The request path put together, for whoever brings clock, chance, timers and transport: the worker and the simulation.
  /^src\/gateway\/(assemble|leases\/sole)\.ts$/,
  // What runs pipelines: a part of the path wherever that is put together.
  /^src\/pipelines\/assemble\.ts$/,
  // What compares answers of copies with those of callers: a part of the path likewise.
  /^src\/releases\/assemble\.ts$/,
];

/** Imports that break the rule, each with its reason. */
export const EXCEPTIONS: readonly { from: string; to: string; reason: string }[] = [
  {
    from: 'src/cli/keys.ts',
    to: 'src/control/keys/index.ts',
    reason:
      'keys are made, listed and revoked while nothing runs, by the same code that control does it with',
  },
];

/** Why `from` may not import `to`, or undefined where it may. Both are paths in the repository. */
export function forbidden(from: string, to: string): string | undefined {
  // A test may put together what the code may not.
  if (!from.startsWith('src/') || from.endsWith('.test.ts')) return undefined;
  if (!to.startsWith('src/')) return `nothing in src needs ${to.split('/')[0]}/`;
  const source = folderOf(from);
  const target = folderOf(to);
  if (source === target) return undefined;
  if (target === 'main') return 'main.ts is where everything starts; nothing imports it';
  // The entry of a process puts its parts together.
  if (/^src\/([a-z]+\/)?main\.ts$/.test(from)) return undefined;
  const above = layerOf(target) - layerOf(source);
  if (above > 0) return `${target} stands above ${source}`;
  if (above === 0 && !DOORS.some((door) => door.test(to))) {
    return `${source} and ${target} stand side by side and meet only through contracts.ts`;
  }
  return undefined;
}

function folderOf(path: string): string {
  return path.split('/')[1]!.replace(/\.ts$/, '');
}

function layerOf(folder: string): number {
  const layer = LAYERS.findIndex((names) => names.includes(folder));
  if (layer < 0) throw new Error(`src/${folder} has no layer: give it one in test/house/boundaries.ts`);
  return layer;
}
