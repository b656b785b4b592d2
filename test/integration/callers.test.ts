import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import type { Ask } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import type { Headers } from '../upstream/exchange.ts';

/** Who may call what, on both protocols, and what of it engines get to see. */

const hash = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`;
const bearer = (key: string): Headers => [['Authorization', `Bearer ${key}`]];
const chat = (model: string, headers: Headers = []): Ask => ({
  path: '/v1/chat/completions',
  body: chatBody({ model }),
  headers,
});
const infer = (model: string, headers: Headers = []): Ask => ({
  path: `/v2/models/${model}/infer`,
  body: { inputs: [] },
  headers,
});
const get = (path: string, headers: Headers = []): Ask => ({ method: 'GET', path, headers });

/** Tenants `web` (its own routes only) and `ops` (every route) before one engine of each protocol. */
async function guarded() {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine());
  const armature = stack.use(
    await startArmature({
      backends: { b1: backendOf(engine), t1: backendOf(engine, { engine: 'oip' }) },
      routes: {
        chat: { targets: [{ backend: 'b1' }] },
        secret: { targets: [{ backend: 'b1' }] },
        tensor: { targets: [{ backend: 't1' }] },
        hidden: { targets: [{ backend: 't1' }] },
      },
      tenants: {
        web: { routes: ['chat', 'tensor'], keys: [{ hash: hash('key-of-web') }] },
        ops: { keys: [{ hash: hash('key-of-ops') }] },
      },
    }),
  );
  return { engine, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('tenants', () => {
  it('are known by their keys alone, on both protocols', async () => {
    await using it = await guarded();
    const bad: Headers[] = [
      [],
      bearer('wrong'),
      [['Authorization', 'key-of-web']],
      [['Authorization', 'Basic a2V5LW9mLXdlYg==']],
      [['x-api-key', 'key-of-web']],
      [...bearer('key-of-web'), ...bearer('key-of-ops')],
    ];
    for (const headers of bad) {
      const said = await it.armature.ask(chat('chat', headers));
      expect([said.status, said.error.code, said.error.type]).toEqual([
        401,
        'unauthorized',
        'authentication_error',
      ]);
      const tensors = await it.armature.ask(infer('tensor', headers));
      expect([tensors.status, typeof tensors.json().error]).toEqual([401, 'string']);
      expect((await it.armature.ask(get('/v1/models', headers))).status).toBe(401);
    }
    expect(it.engine.posts).toEqual([]);
    for (const key of ['key-of-web', 'key-of-ops']) {
      expect((await it.armature.ask(chat('chat', bearer(key)))).status).toBe(200);
      expect((await it.armature.ask(infer('tensor', bearer(key)))).status).toBe(200);
    }
    // Whoever looks after the process has no key.
    for (const path of ['/healthz', '/readyz']) expect((await it.armature.ask(get(path))).status).toBe(200);
  });

  it('call their own routes only, and see no others', async () => {
    await using it = await guarded();
    const web = bearer('key-of-web');
    for (const call of [chat('secret', web), infer('hidden', web)]) {
      const refused = await it.armature.ask(call);
      expect([refused.status, refused.header('x-should-retry')]).toEqual([403, 'false']);
    }
    for (const path of [
      '/v2/models/hidden',
      '/v2/models/hidden/ready',
      '/v2/models/hidden/versions/1/infer',
    ]) {
      const method = path.endsWith('infer') ? 'POST' : 'GET';
      const body = method === 'POST' ? { inputs: [] } : undefined;
      expect((await it.armature.ask({ method, path, body, headers: web })).status).toBe(403);
    }
    expect(it.engine.posts).toEqual([]);
    const names = async (key: string) =>
      (await it.armature.ask(get('/v1/models', bearer(key)))).json().data.map(({ id }: { id: string }) => id);
    expect((await names('key-of-web')).sort()).toEqual(['chat', 'tensor']);
    expect((await names('key-of-ops')).sort()).toEqual(['chat', 'hidden', 'secret', 'tensor']);
    expect((await it.armature.ask(get('/v1/models/chat', web))).status).toBe(200);
    expect((await it.armature.ask(chat('secret', bearer('key-of-ops')))).status).toBe(200);
  });

  it('are told no name that is not theirs', async () => {
    await using it = await guarded();
    const web = bearer('key-of-web');
    const gone = await it.armature.ask(get('/v1/models/secret', web));
    expect([gone.status, gone.error.code]).toEqual([404, 'unknown_route']);
    expect(gone.error.message).not.toContain('Did you mean');
    const near = await it.armature.ask(chat('SECRET', web));
    expect([near.status, near.error.code]).toEqual([404, 'unknown_route']);
    expect(near.error.message).not.toContain("'secret'");
    const own = await it.armature.ask(chat('CHAT', web));
    expect(own.error.message).toContain("'chat'");
  });
});

describe('what an engine is shown of a caller', () => {
  it.each([
    ['nothing', undefined, {}],
    ['a bearer token', { bearer: 'of-armature' }, { authorization: 'Bearer of-armature' }],
    ['a header', { header: { name: 'Api-Key', value: 'of-armature' } }, { 'api-key': 'of-armature' }],
    [
      'a user and password',
      { basic: { user: 'armature', password: 'pässword' } },
      { authorization: `Basic ${Buffer.from('armature:pässword').toString('base64')}` },
    ],
  ])('is %s of its own, and no secret of the caller', async (_, auth, expected: Record<string, string>) => {
    await using engine = await startEngine();
    const more = auth === undefined ? {} : { auth };
    await using armature = await startArmature({
      backends: { b1: backendOf(engine, more), t1: backendOf(engine, { ...more, engine: 'oip' }) },
      routes: { chat: { targets: [{ backend: 'b1' }] }, tensor: { targets: [{ backend: 't1' }] } },
    });
    const secrets: Headers = [
      ...bearer('of-the-caller'),
      ['Proxy-Authorization', 'Basic of-the-caller'],
      ['Cookie', 'session=of-the-caller'],
      ['Api-Key', 'of-the-caller'],
      ['X-Api-Key', 'of-the-caller'],
      ['X-Forwarded-For', 'of-the-caller'],
      ['X-Armature-Session', 'of-the-caller'],
    ];
    expect((await armature.ask(chat('chat', secrets))).status).toBe(200);
    expect((await armature.ask(infer('tensor', secrets))).status).toBe(200);
    for (const request of engine.posts) {
      expect(request.headers.map(([name, value]) => `${name}: ${value}`).join('\n')).not.toContain(
        'of-the-caller',
      );
      for (const name of ['authorization', 'api-key']) expect(request.header(name)).toBe(expected[name]);
    }
    const probes = engine.requests.filter(({ method }) => method === 'GET');
    for (const probe of probes) {
      for (const name of ['authorization', 'api-key']) expect(probe.header(name)).toBe(expected[name]);
    }
  });

  it.each([401, 403])('goes unsaid when the engine refuses it with %i', async (status) => {
    const refuse: Script = (x) =>
      x.json(
        { error: { message: 'bad key of-armature', type: 'auth', param: null, code: null } },
        { status, headers: [['WWW-Authenticate', 'Bearer realm="engine"']] },
      );
    await using engine = await startEngine(refuse);
    await using armature = await startArmature({
      backends: { b1: backendOf(engine, { auth: { bearer: 'of-armature' } }) },
      routes: { chat: { targets: [{ backend: 'b1' }] } },
    });
    const answer = await armature.ask(chat('chat'));
    expect([answer.status, answer.error.code]).toEqual([502, 'backend_error']);
    expect(answer.header('www-authenticate')).toBeUndefined();
    expect(answer.content.toString()).not.toContain('of-armature');
    expect(armature.logs).not.toContain('of-armature');
  });
});

describe('a web page', () => {
  it('of another origin reaches nothing, whichever way it asks', async () => {
    await using engine = await startEngine();
    await using armature = await startArmature({
      backends: { b1: backendOf(engine) },
      routes: { chat: { targets: [{ backend: 'b1' }] } },
    });
    for (const origin of ['http://evil.example', 'https://127.0.0.1.evil.example', 'null', 'nonsense']) {
      const answer = await armature.ask(chat('chat', [['Origin', origin]]));
      expect([origin, answer.status, answer.error?.code]).toEqual([origin, 403, 'forbidden']);
      expect(answer.header('access-control-allow-origin')).toBeUndefined();
    }
    // A page whose name was made to lead here is another origin still, though its host says the same.
    const rebound: Headers = [
      ['Host', `evil.example:${armature.gatewayPort}`],
      ['Origin', `http://evil.example:${armature.gatewayPort}`],
    ];
    expect((await armature.ask(chat('chat', rebound))).status).toBe(403);
    expect(engine.posts).toEqual([]);
    for (const origin of [`http://127.0.0.1:${armature.gatewayPort}`, 'http://localhost:3000']) {
      expect((await armature.ask(chat('chat', [['Origin', origin]]))).status).toBe(200);
    }
    expect((await armature.ask(chat('chat'))).status).toBe(200);
  });
});
