import type { Notice } from './faults.ts';
import { formatPath } from './places.ts';
import { select } from './shape.ts';
import type { Sources } from './sources.ts';

/** Keys that are checked, but do nothing yet. `*` stands for any name or list position. */
const LATER: readonly { pattern: string; when?: (value: unknown) => boolean; sentence: string }[] = [
  {
    pattern: 'coordination.url',
    when: (value) => typeof value === 'string' && value.startsWith('redis'),
    sentence: 'limits are shared among the workers of this machine only',
  },
  {
    pattern: 'store.url',
    when: (value) => typeof value === 'string' && value.startsWith('postgres'),
    sentence: 'state is kept in SQLite, in the data directory',
  },
  { pattern: 'backends.*.gauges', sentence: "the engine's own metrics are not read" },
  { pattern: 'backends.*.host.idleStop', sentence: 'a host runs until Armature stops' },
  { pattern: 'routes.*.shadow', sentence: 'no copies are sent' },
  { pattern: 'routes.*.ladder.*.cached', sentence: 'the rung is passed over' },
  {
    pattern: 'routes.*.affinity',
    when: (value) => value === 'prefix',
    sentence: 'requests are spread as with none',
  },
  { pattern: 'tenants.*.limits', sentence: 'its requests are not limited' },
  { pattern: 'pipelines.*', sentence: 'it cannot be called' },
];

/** Whether a key, `*` for any name or list position in it, does nothing yet whatever its value. */
export function hasNoEffectYet(pattern: readonly string[]): boolean {
  return LATER.some((later) => !later.when && later.pattern === pattern.join('.'));
}

/** Says aloud what is set but has no effect yet. */
export function laterNotices(document: Record<string, unknown>, sources: Sources): Notice[] {
  const notices: Notice[] = [];
  for (const { pattern, when, sentence } of LATER) {
    for (const { path, value } of select(document, pattern.split('.'))) {
      if (when ? !when(value) : isEmpty(value)) continue;
      const { file, line, column } = sources.locate(path, 'key');
      notices.push({
        code: 'no-effect-yet',
        file,
        line,
        column,
        path: formatPath(path),
        message: `has no effect yet: ${sentence}`,
      });
    }
  }
  return notices;
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
