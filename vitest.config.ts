import { defineConfig } from 'vitest/config';

/**
 * unit: beside the code, no sockets, no processes. house: rules of the house. integration: real sockets and processes.
 * e2e: the shipped command. Threads where a test changes nothing of its process; processes where it may.
 */
export default defineConfig({
  test: {
    maxWorkers: 2,
    // A machine that is busy with other things is no failure: minutes of virtual time take seconds on a quiet one.
    testTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: [
            'src/**/*.test.ts',
            'bench/**/*.test.ts',
            'test/path/**/*.test.ts',
            'test/context/**/*.test.ts',
            'test/worlds/**/*.test.ts',
          ],
          pool: 'threads',
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'house', include: ['test/house/**/*.test.ts'], pool: 'threads', isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: [
            'test/integration/**/*.test.ts',
            'test/upstream/**/*.test.ts',
            'test/engines/**/*.test.ts',
          ],
          pool: 'forks',
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
