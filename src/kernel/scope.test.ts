import { describe, expect, it } from 'vitest';
import { Scope } from './scope.ts';

describe('a scope', () => {
  it('gives back what was taken, newest first, once', () => {
    const given: string[] = [];
    const scope = new Scope();
    scope.add(() => given.push('slot'));
    scope.add(() => given.push('socket'));
    scope.close();
    scope.close();
    expect(given).toEqual(['socket', 'slot']);
    expect(scope.closed).toBe(true);
  });

  it('gives back at once what is taken after its end', () => {
    const given: string[] = [];
    const scope = new Scope();
    scope.close();
    scope.add(() => given.push('timer'));
    expect(given).toEqual(['timer']);
  });

  it('may be closed by what it gives back', () => {
    const given: string[] = [];
    const scope = new Scope();
    scope.add(() => given.push('first'));
    scope.add(() => scope.close());
    scope.close();
    expect(given).toEqual(['first']);
  });
});
