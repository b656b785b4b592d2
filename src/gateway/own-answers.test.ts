import { describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode } from '../kernel/errors.ts';
import { failureAnswer } from './own-answers.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

describe('what a failure tells SDKs', () => {
  it.each(CODES)('%s: they are told not to ask again exactly where that cannot help', (code) => {
    const { headers } = failureAnswer({ code, message: 'No.', phase: 'before-queue' }, '/v1/models');
    expect(headers.includes('x-should-retry')).toBe(!ERRORS[code].retryable);
  });

  it('lets a failure say of itself that asking again cannot help', () => {
    const failure = { code: 'conflict', message: 'No.', phase: 'sent', shouldRetry: false } as const;
    expect(failureAnswer(failure, '/v2').headers).toContain('x-should-retry');
  });
});
