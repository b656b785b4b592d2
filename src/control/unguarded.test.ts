import { expect, test } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import { unguarded } from './unguarded.ts';

const tokens = [{ name: 'ann', hash: `sha256:${'0'.repeat(64)}`, role: 'admin' }];
const paths = (began: object, next: object) =>
  unguarded(settingsSchema.parse(began), settingsSchema.parse(next), 'a.yaml').map(({ path }) => path);

test('what guards an address beyond loopback stays until the next start', () => {
  const open = {
    gateway: { listen: '0.0.0.0:7070' },
    admin: { listen: '0.0.0.0:7071', tokens },
    tenants: {},
  };
  const loopback = { gateway: { listen: '127.0.0.1:7070' }, admin: { listen: '127.0.0.1:7071' } };
  expect(paths(open, loopback)).toEqual(['tenants', 'admin.tokens']);
  expect(paths(open, { ...loopback, admin: { listen: '127.0.0.1:7071', tokens }, tenants: {} })).toEqual([]);
  expect(paths(loopback, loopback)).toEqual([]);
  expect(paths(loopback, open)).toEqual([]);
});
