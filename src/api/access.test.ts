import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { type AccessSettings, callerOf, type Knock, refusalOf } from './access.ts';

const open: AccessSettings = { listenHost: '127.0.0.1', tokens: [], localToken: 'local' };
const hash = (token: string) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
const closed: AccessSettings = {
  listenHost: '10.0.0.5',
  tokens: [
    { name: 'ann', hash: hash('a'), role: 'admin' },
    { name: 'vic', hash: hash('v'), role: 'viewer' },
  ],
  localToken: 'local',
};

function knock(knock: Partial<Knock>, settings = open) {
  const whole = {
    method: 'GET',
    host: '127.0.0.1:7071',
    origin: undefined,
    authorization: undefined,
    ...knock,
  };
  const verdict = refusalOf(whole, settings) ?? callerOf(whole, settings);
  return 'status' in verdict ? verdict.status : `${verdict.role} ${verdict.actor}`;
}

test('on loopback anyone on this machine may look, and only who can read the data directory may change', () => {
  expect(knock({})).toBe('viewer anyone');
  expect(knock({ method: 'POST' })).toBe(401);
  for (const method of ['PUT', 'POST', 'DELETE']) {
    expect(knock({ method, authorization: 'Bearer local' })).toBe('admin operator');
    expect(knock({ method, authorization: 'Bearer other' })).toBe(401);
    expect(knock({ method, authorization: 'Basic local' })).toBe(401);
  }
  expect(knock({ authorization: 'Bearer other' })).toBe(401);
});

test.each(['127.0.0.1:7071', 'localhost:7071', 'LOCALHOST', '[::1]:7071', '127.0.0.5:80'])(
  'the host %s is ours',
  (host) => {
    expect(knock({ host })).toBe('viewer anyone');
  },
);

test.each(['evil.example:7071', 'localhost.evil.example', '10.0.0.5:7071', '127.0.0.1.nip.example', '[::2]'])(
  'the host %s is not, whatever the token',
  (host) => {
    expect(knock({ host })).toBe(403);
    expect(knock({ host, authorization: 'Bearer local' })).toBe(403);
  },
);

test.each([undefined, '', 'a b', 'a@b', '127.0.0.1:7071/x'])('the host %s is none at all', (host) => {
  expect(knock({ host })).toBe(400);
});

test('a page of another origin is refused, the own one is not', () => {
  expect(knock({ origin: 'http://127.0.0.1:7071' })).toBe('viewer anyone');
  expect(knock({ origin: 'http://localhost:80', host: 'localhost' })).toBe('viewer anyone');
  for (const origin of [
    'http://evil.example',
    'null',
    'http://127.0.0.1:8080',
    'http://localhost:7071',
    'file://',
    '',
  ]) {
    expect(knock({ origin })).toBe(403);
    expect(knock({ origin, method: 'POST', authorization: 'Bearer local' })).toBe(403);
  }
});

test('with tokens every request needs one, and a viewer changes nothing', () => {
  expect(knock({}, closed)).toBe(401);
  expect(knock({ authorization: 'Bearer x' }, closed)).toBe(401);
  expect(knock({ authorization: 'Bearer v' }, closed)).toBe('viewer token:vic');
  expect(knock({ authorization: 'Bearer v', method: 'DELETE' }, closed)).toBe(403);
  expect(knock({ authorization: 'bearer a', method: 'DELETE' }, closed)).toBe('admin token:ann');
  expect(knock({ authorization: 'Bearer local', method: 'PUT' }, closed)).toBe('admin operator');
});

test('beyond loopback any name may lead here, for it is tokens that guard it', () => {
  expect(knock({ host: 'armature.internal', authorization: 'Bearer v' }, closed)).toBe('viewer token:vic');
});

test('beyond loopback nothing is open, even where no token is configured', () => {
  const bare = { ...closed, tokens: [] };
  expect(knock({}, bare)).toBe(401);
  expect(knock({ authorization: 'Bearer local', method: 'PUT' }, bare)).toBe('admin operator');
});
