import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach } from 'vitest';

/** The real engines and foreign clients that the tests use, and where `provision.ts` puts them. */

export type Provided = 'python-clients' | 'llama.cpp' | 'mlserver' | 'triton';

/** What `provision.ts` writes when it is done. */
export interface Provision {
  /** The interpreter that the packages belong to. */
  python: string;
  /** Why something cannot be had here. */
  missing: Partial<Record<Provided, string>>;
}

export const requirementsFile = join(import.meta.dirname, 'requirements.txt');

export const enginesFolder = (): string =>
  process.env['ARMATURE_ENGINES'] ?? join(homedir(), '.cache/armature/engines');

/** One folder for each set of versions; everything is below it. */
export function provisionFolder(): string {
  const stamp = createHash('sha256').update(readFileSync(requirementsFile)).digest('hex').slice(0, 16);
  return join(enginesFolder(), stamp);
}

export const packagesFolder = (): string => join(provisionFolder(), 'packages');
export const provisionFile = (): string => join(provisionFolder(), 'provision.json');

export function readProvision(): Provision {
  const file = provisionFile();
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8'));
  const reason = 'not provisioned: run `npm test -- engines` first';
  return {
    python: '',
    missing: { 'python-clients': reason, 'llama.cpp': reason, mlserver: reason, triton: reason },
  };
}

/** Why one of these cannot be had here; undefined when all can. */
function whyMissing(...wanted: Provided[]): string | undefined {
  const { missing } = readProvision();
  return wanted.map((name) => missing[name]).find((reason) => reason !== undefined);
}

/**
 * What the tests of one file or block share: built once before them, disposed of after them. Where one of `wanted`
 * cannot be had, nothing is built and each test is skipped with the reason.
 */
export function shared<T>(wanted: Provided[], build: (stack: AsyncDisposableStack) => Promise<T>): () => T {
  const reason = whyMissing(...wanted);
  const stack = new AsyncDisposableStack();
  let value: T | undefined;
  beforeAll(async () => {
    if (reason === undefined) value = await build(stack);
  });
  beforeEach((context) => {
    if (reason !== undefined) context.skip(reason);
  });
  afterAll(() => stack.disposeAsync());
  return () => value as T;
}
