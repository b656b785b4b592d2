import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arm, Played } from '../../../test/releases/played-release.ts';
import { mix32 } from '../../kernel/hash.ts';
import { type Evidence, MARKS } from '../contracts.ts';

describe('Evidence that cannot be', () => {
  const broken: [string, (evidence: Evidence) => unknown][] = [
    ['NaN', (evidence) => ({ ...evidence, arms: { ...evidence.arms, canary: arm(10, Number.NaN) } })],
    [
      'null, as JSON makes of NaN',
      (evidence) => JSON.parse(JSON.stringify({ ...evidence, share: Number.NaN })),
    ],
    [
      'infinity',
      (evidence) => ({ ...evidence, arms: { ...evidence.arms, stable: arm(Number.POSITIVE_INFINITY) } }),
    ],
    ['below zero', (evidence) => ({ ...evidence, arms: { ...evidence.arms, stable: arm(-1) } })],
    [
      'more failures than requests',
      (evidence) => ({ ...evidence, arms: { ...evidence.arms, stable: arm(1, 2) } }),
    ],
    [
      'a bucket that is none',
      (evidence) => ({
        ...evidence,
        arms: { ...evidence.arms, canary: arm(1, 0, { a: [[1, Number.NaN]] }) },
      }),
    ],
    ['a missing member', ({ marks: _marks, ...evidence }) => evidence],
  ];

  it.each(broken)(
    '(%s) freezes the verdict: never promoted (Argo, Flagger, Kayenta on NaN)',
    (_name, spoil) => {
      const release = new Played();
      release.minute(600).tell(spoil(release.empty()) as Evidence);
      release.until(() => release.minute(600), 25 * 60);
      expect(release.said).toContain('release-evidence-broken');
      expect(release.said).not.toContain('release-certified');
      expect(release.last).toBe('release-deadline-passed');
    },
  );

  it('still lets harm be seen', () => {
    const release = new Played();
    release.minute(600).tell(broken[0]![1](release.empty()) as Evidence);
    release.until(() => release.minute(600, { canary: 20, stable: 100 }));
    expect(release.last).toBe('release-metric-worse');
  });

  it('is anything else than evidence, and stops nothing', () => {
    fc.assert(
      fc.property(fc.object(), fc.anything(), (members, value) => {
        const release = new Played();
        release.tell({ ...members, release: 'rel_1' } as unknown as Evidence);
        release.tell({ ...release.empty(), firsts: value, pairs: value } as unknown as Evidence);
        release.pass(1000);
        expect(release.said).not.toContain('release-certified');
      }),
    );
  });

  it('of another release is none of its business', () => {
    const release = new Played();
    release.minute(600, {}, { release: 'rel_2', share: Number.NaN });
    expect(release.machine.report(release.nowMs).arms.stable.requests).toBe(0);
    expect(release.said).not.toContain('release-evidence-broken');
  });
});

describe('Sessions', () => {
  it('count once for each mark, however often they fail and whoever tells it', () => {
    const release = new Played();
    release.pass(1000);
    const marks: Evidence['marks'] = [[7, 0, MARKS.failed]];
    for (let i = 0; i < 50; i++) release.tell({ ...release.empty(), worker: i % 2, marks });
    expect(release.machine.report(release.nowMs).metrics[0]).toMatchObject({ canary: 1, others: 0 });
  });

  it('are remembered within a bound, and the state with them', () => {
    const release = new Played();
    release.pass(1000);
    for (let batch = 0; batch < 200; batch++) {
      const hashes = Array.from({ length: 500 }, (_, i) => mix32(500 * batch + i));
      const marks = hashes.map((hash): Evidence['marks'][number] => [
        hash,
        hash % 3 === 0 ? 0 : 2,
        MARKS.failed,
      ]);
      const firsts = hashes.map((hash): Evidence['firsts'][number] => [hash, (hash % 2) as 0 | 1, 0]);
      release.tell({ ...release.empty(), marks, firsts });
    }
    expect(JSON.stringify(release.machine.state).length).toBeLessThan(300_000);
    const { sessions } = release.machine.report(release.nowMs);
    expect(sessions.all / 50_000).toBeGreaterThan(0.9);
    expect(sessions.all / 50_000).toBeLessThan(1.1);
  });

  it('that do not fall by the share freeze the verdict (#6, #20, #21)', () => {
    const release = new Played();
    release.until(() => {
      const evidence = release.empty();
      // Every third session of the canary is never told of.
      for (let i = 0; i < 100; i++) evidence.firsts.push([mix32(release.nowMs + i), i % 5 < 2 ? 0 : 1, 0]);
      release
        .tell({ ...evidence, arms: { ...evidence.arms, canary: arm(40), baseline: arm(60) } })
        .pass(60_000);
    }, 25 * 60);
    expect(release.said).toContain('release-arms-skewed');
    expect(release.last).toBe('release-deadline-passed');
  });
});
