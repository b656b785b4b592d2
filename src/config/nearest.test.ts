import { describe, expect, it } from 'vitest';
import { nearest, nearestUnit } from './nearest.ts';

describe('what was probably meant', () => {
  it('is the most like of what could be meant', () => {
    const keys = ['targets', 'shadow', 'ladder', 'deadline', 'queue', 'affinity', 'retry'];
    expect(nearest('wieght', ['backend', 'weight'])).toBe('weight');
    expect(nearest('Deadline', keys)).toBe('deadline');
    expect(nearest('target', keys)).toBe('targets');
    expect(nearest('timeout', keys)).toBeUndefined();
    expect(nearest('x', ['y'])).toBeUndefined();
    expect(nearest('b2', ['b1'])).toBe('b1');
    expect(nearest('anything', [])).toBeUndefined();
  });

  it('is a unit as it is written here', () => {
    const meant = (kind: string, found: unknown): string | undefined => nearestUnit(kind, found);
    expect(meant('duration', 500)).toBe('500ms or 500s');
    expect(meant('duration', '10 sec')).toBe('10s');
    expect(meant('duration', '2 Minutes')).toBe('2m');
    expect(meant('duration', '5 parsecs')).toBeUndefined();
    expect(meant('size', 1024)).toBe('1024B');
    expect(meant('size', '8mib')).toBe('8MiB');
    expect(meant('size', '8 G')).toBe('8GiB');
    expect(meant('rate', '200 per second')).toBe('200/s');
    expect(meant('rate', '5/minute')).toBe('5/min');
    expect(meant('rate', 7)).toBe('7/s or 7/min');
    expect(meant('name', '7')).toBeUndefined();
    expect(meant('duration', null)).toBeUndefined();
  });
});
