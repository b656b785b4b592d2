import type { Notice } from './faults.ts';
import { formatPath } from './places.ts';
import { select } from './shape.ts';
import type { Sources } from './sources.ts';

interface Later {
  /** `*` stands for any name or list position. */
  pattern: string;
  /** The values without effect; every one where absent. */
  only?: (value: unknown) => boolean;
  sentence: string;
}

const startsWith =
  (start: string) =>
  (value: unknown): boolean =>
    typeof value === 'string' && value.startsWith(start);

/** Keys that are checked, but do nothing yet. */
const LATER: readonly Later[] = [
  {
    pattern: 'coordination.url',
    only: startsWith('redis'),
    sentence: 'limits are shared among the workers of this machine only',
  },
  {
    pattern: 'store.url',
    only: startsWith('postgres'),
    sentence: 'state is kept in SQLite, in the data directory',
  },
];

/** Whether a key, `*` for any name or list position in it, does nothing yet whatever its value. */
export function hasNoEffectYet(pattern: readonly string[]): boolean {
  return LATER.some((later) => !later.only && later.pattern === pattern.join('.'));
}

/** Says aloud what is set but has no effect yet. */
export function laterNotices(document: Record<string, unknown>, sources: Sources): Notice[] {
  const notices: Notice[] = [];
  for (const { pattern, only, sentence } of LATER) {
    for (const { path, value } of select(document, pattern.split('.'))) {
      if (only ? !only(value) : isEmpty(value)) continue;
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
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;
