import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** What a run came to; `npm test` adds these up. */
export interface Tally {
  passed: number;
  failed: number;
  /** Full names with the reason that the test itself gave. */
  skipped: { name: string; reason: string }[];
}

/** Writes a run's Tally to the file that ARMATURE_TALLY names. */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const file = process.env.ARMATURE_TALLY;
    if (!file) return;
    const tally: Tally = { passed: 0, failed: unhandled.length, skipped: [] };
    for (const module of modules) {
      if (module.errors().length > 0) tally.failed += 1;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') tally.passed += 1;
        else if (result.state === 'failed') tally.failed += 1;
        else {
          const reason = (result.state === 'skipped' && result.note) || 'no reason given';
          tally.skipped.push({ name: `${module.relativeModuleId} > ${test.fullName}`, reason });
        }
      }
    }
    writeFileSync(file, JSON.stringify(tally));
  }
}
