import { describe, expect, it } from 'vitest';
import { oipPath, readOipPath } from './paths.ts';

describe('paths of the Open Inference Protocol', () => {
  it.each([
    ['/v2', { call: 'server' }],
    ['/v2/health/live', { call: 'live' }],
    ['/v2/health/ready', { call: 'ready' }],
    ['/v2/models/m', { call: 'model', model: 'm', version: undefined }],
    ['/v2/models/m/ready', { call: 'model-ready', model: 'm', version: undefined }],
    ['/v2/models/m/infer', { call: 'infer', model: 'm', version: undefined }],
    ['/v2/models/org/m.v1/infer', { call: 'infer', model: 'org/m.v1', version: undefined }],
    ['/v2/models/org%2Fm.v1/infer', { call: 'infer', model: 'org/m.v1', version: undefined }],
    ['/v2/models/m/versions/3/infer', { call: 'infer', model: 'm', version: '3' }],
    ['/v2/models/m/versions/1.2-rc1/ready', { call: 'model-ready', model: 'm', version: '1.2-rc1' }],
  ])('%s asks for %j', (path, call) => {
    expect(readOipPath(path)).toEqual(call);
  });

  it.each(['/v2/', '/v2/models/m/versions/3'])('%s is one of them', (path) => {
    expect(readOipPath(path)).toBeDefined();
  });

  it.each([
    '/v2/models',
    '/v2/models/',
    '/v2/health',
    '/v2/models/%zz/infer',
    '/v2/models/m/versions/../infer',
    '/v2/models/m/versions/%2e%2e/infer',
    '/v2/models/m/versions/./infer',
    '/v2/models/m/versions/a%2F..%2Fb/infer',
    '/v2/models/m/versions/a%5Cb/infer',
    '/v2/models/m/versions/%00/infer',
    `/v2/models/m/versions/${'1'.repeat(300)}/infer`,
  ])('%s is none of them', (path) => {
    expect(readOipPath(path)).toBeUndefined();
  });

  it('are written so that no name leads to another path', () => {
    expect(oipPath('infer', 'we ird/ü%', '1')).toBe('/v2/models/we%20ird%2F%C3%BC%25/versions/1/infer');
  });
});
