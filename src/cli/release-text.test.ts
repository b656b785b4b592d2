import { expect, it } from 'vitest';
import type { ReleaseView } from '../api/contracts.ts';
import { releaseText } from './release-text.ts';

const arm = { requests: 0, failed: 0, tokensIn: 0, tokensOut: 0, cost: 0, times: {} };
const RELEASE: ReleaseView = {
  id: 'rel_1',
  route: 'chat',
  to: 'next',
  state: 'running',
  phase: 'shadow',
  step: 0,
  steps: 2,
  share: 0,
  plan: [5, 50, 100],
  captured: [{ backend: 'old', weight: 1 }],
  startedAt: '2026-12-01T00:00:00.000Z',
  startedBy: 'operator',
  overtaken: false,
  metrics: [],
  assignment: { e: 1, frozenAt: 1000, canary: 0, baseline: 0 },
  arms: { canary: arm, baseline: arm, stable: arm },
  sessions: { step: 0, all: 0 },
  pairs: 0,
  skipped: {},
  gates: {},
  stableBroken: false,
  event: 'ev_1',
};

it('tells of copies where there were any, and why some were not compared', () => {
  expect(releaseText(RELEASE)).not.toContain('copies');
  expect(releaseText({ ...RELEASE, pairs: 7 })).toContain('  copies    7 answers compared');
  expect(releaseText({ ...RELEASE, skipped: { 'too-many': 3, 'not-comparable': 1 } })).toContain(
    '  copies    0 answers compared; not compared: 3 too-many, 1 not-comparable',
  );
});

it('says of a release that could not go back what is in force', () => {
  const left = 'it was edited';
  const said = releaseText({ ...RELEASE, state: 'rolled-back', phase: 'rolled-back', left });
  expect(said).toContain('  left      The targets of the file stay: it was edited.');
});
