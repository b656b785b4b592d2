import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ControlProcess } from './control-process.ts';

const CONFIG = {
  backends: {
    far: { engine: 'openai', model: 'm', endpoints: ['http://127.0.0.1:9/v1'], probe: { off: true } },
  },
  routes: Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { targets: [{ backend: 'far' }] }])),
};
const hash = (token: string) => `sha256:${createHash('sha256').update(token).digest('hex')}`;

let control: ControlProcess;
beforeAll(async () => {
  control = await ControlProcess.start(CONFIG);
});
afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

const statusOf = async (method: string, path: string, ...headers: [string, string][]) =>
  (await control.admin(path, { method, headers, ...(method === 'GET' ? {} : { body: {} }) })).status;

test('a name that was rebound to loopback is refused, whatever is asked', async () => {
  for (const path of ['/', '/metrics', '/api/v1/status', '/api/openapi.json', '/nothing']) {
    expect(await statusOf('GET', path, ['Host', 'evil.example:7071'])).toBe(403);
    expect(await statusOf('GET', path, ['Host', `127.0.0.1:${control.adminPort}`])).toBe(
      path === '/nothing' ? 404 : 200,
    );
  }
});

test('a page of another origin is refused, with the right token as well', async () => {
  const token: [string, string] = ['authorization', `Bearer ${control.token}`];
  const host: [string, string] = ['Host', `localhost:${control.adminPort}`];
  expect(await statusOf('GET', '/api/v1/status', host, ['Origin', 'http://evil.example'])).toBe(403);
  expect(await statusOf('POST', '/api/v1/keys', host, token, ['Origin', 'null'])).toBe(403);
  expect(
    await statusOf('GET', '/api/v1/status', host, ['Origin', `http://localhost:${control.adminPort}`]),
  ).toBe(200);
});

test('no spelling of a path changes anything without the token', async () => {
  const spellings = [
    '/api/v1/config',
    '/api/v1//config',
    '/api/v1/%63onfig',
    '/%61pi/v1/config',
    '/x/../api/v1/config',
    '/api/v1/config/',
    '//api/v1/config',
    '/API/v1/config',
    '\\api\\v1\\config',
  ];
  for (const path of spellings) {
    const answer = await control.admin(path, { method: 'PUT', body: { routes: { a: { deadline: '9s' } } } });
    expect([400, 401, 404]).toContain(answer.status);
  }
  expect(await control.events('configuration-changed')).toEqual([]);
  expect((await control.change('PUT', '/api/v1/config', { routes: { a: { deadline: '9s' } } })).status).toBe(
    200,
  );
});

test('every path that is described answers, and what is not built is not found', async () => {
  const { openapi, paths } = await control.json<{
    openapi: string;
    paths: Record<string, Record<string, unknown>>;
  }>('/api/openapi.json');
  expect(openapi).toBe('3.1.0');
  const described = Object.keys(paths).map((path) => path.replace('/api/v1/', ''));
  for (const path of [
    'artifacts/{sha256}',
    'backends',
    'config',
    'decisions/{id}',
    'drift',
    'events',
    'keys/{id}',
    'models',
    'parity',
    'registry/{name}/versions/{number}/diff',
    'registry/{name}/aliases/{alias}',
    'releases/{id}',
    'requests/{id}',
    'routes',
    'sessions/{id}',
    'status',
    'tenants',
    'why/{id}',
  ])
    expect(described).toContain(path);
  for (const [path, methods] of Object.entries(paths)) {
    if (!methods.get) continue;
    expect([path, await statusOf('GET', path.replace(/\{\w+\}/g, 'nothing'))]).toEqual([
      path,
      path.includes('{') ? 404 : 200,
    ]);
  }
  expect(await statusOf('GET', '/api/v1/nothing')).toBe(404);
  expect(await statusOf('POST', '/v1/chat/completions')).toBe(404);
  expect(await statusOf('POST', '/api/v1/keys', ['authorization', `Bearer ${control.token}`])).toBe(400);
});

test('lists come in pages', async () => {
  type Page = { data: { name: string }[]; next: string | null };
  const first = await control.json<Page>('/api/v1/routes?limit=2');
  expect([first.data.map(({ name }) => name), first.next]).toEqual([['a', 'b'], 'b']);
  const last = await control.json<Page>('/api/v1/routes?limit=2&after=b');
  expect([last.data.map(({ name }) => name), last.next]).toEqual([['c'], null]);
  for (const query of ['limit=0', 'limit=x', 'limit=1001'])
    expect(await statusOf('GET', `/api/v1/routes?${query}`)).toBe(400);
  expect(await statusOf('GET', '/api/v1/routes?after=nothing')).toBe(404);
});

test('the page needs nothing from elsewhere and lets nothing else in', async () => {
  const answer = await control.admin('/');
  const html = answer.content.toString();
  expect(answer.header('content-type')).toContain('text/html');
  expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
  const policy = answer.header('content-security-policy') ?? '';
  for (const part of ['style', 'script']) {
    const inner = new RegExp(`<${part}>([^]*?)</${part}>`).exec(html)![1]!;
    expect(policy).toContain(`'sha256-${createHash('sha256').update(inner).digest('base64')}'`);
  }
});

test('a body that is too large, has no length, or is no JSON is refused', async () => {
  const token: [string, string] = ['authorization', `Bearer ${control.token}`];
  const put = (body: string | Buffer, ...headers: [string, string][]) =>
    control.admin('/api/v1/config', { method: 'PUT', body, headers: [token, ...headers] });
  expect((await put(Buffer.alloc(5 * 2 ** 20, 32))).status).toBe(413);
  expect((await put('2\r\n{}\r\n0\r\n\r\n', ['transfer-encoding', 'chunked'])).status).toBe(400);
  expect((await put('{"routes":')).status).toBe(400);
  expect((await put('[1]')).status).toBe(400);
  expect((await put('{}', ['content-type', 'text/plain'])).status).toBe(415);
  expect((await put('routes: { a: { deadline: 8s } }', ['content-type', 'application/yaml'])).status).toBe(
    200,
  );
});

test('with admin.tokens, over TLS: everything needs a token, a viewer looks, an admin changes, and a new token counts at once', async () => {
  await using closed = await ControlProcess.start(CONFIG);
  const [cert, key] = [join(closed.folder, 'cert.pem'), join(closed.folder, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ];
  execFileSync('openssl', [...made, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  await closed.end('SIGTERM');
  const tokens = [
    { name: 'ann', hash: hash('a-token'), role: 'admin' },
    { name: 'vic', hash: hash('v-token'), role: 'viewer' },
  ];
  closed.write({ ...CONFIG, admin: { tls: { cert, key }, tokens } });
  const secure = (method: string, path: string, token?: string, body?: unknown) =>
    new Promise<number>((resolve, reject) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const options = {
        host: 'localhost',
        port: closed.adminPort,
        path,
        method,
        headers,
        ca: readFileSync(cert),
        agent: false,
      };
      request(options, (answer) => resolve(answer.resume().statusCode ?? 0))
        .on('error', reject)
        .end(text);
    });
  await closed.up(() =>
    secure('GET', '/api/openapi.json').then(
      (status) => status === 200,
      () => false,
    ),
  );
  const deadline = { routes: { a: { deadline: '9s' } } };
  expect(await secure('GET', '/')).toBe(200);
  for (const path of ['/metrics', '/api/v1/status']) {
    expect(await secure('GET', path)).toBe(401);
    expect(await secure('GET', path, 'wrong')).toBe(401);
    expect(await secure('GET', path, 'v-token')).toBe(200);
  }
  expect(await secure('PUT', '/api/v1/config', undefined, deadline)).toBe(401);
  expect(await secure('PUT', '/api/v1/config', 'v-token', deadline)).toBe(403);
  expect(await secure('PUT', '/api/v1/config', 'a-token', deadline)).toBe(200);
  expect(await secure('PUT', '/api/v1/config', closed.token, { admin: { tokens: [tokens[1]] } })).toBe(200);
  expect(await secure('GET', '/metrics', 'a-token')).toBe(401);
});
