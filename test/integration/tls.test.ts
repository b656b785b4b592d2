import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, createServer, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendOf, type Config, chatBody, startArmature } from '../upstream/armature.ts';
import { type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

/** An authority of our own, a server's certificate and a client's, as files. */
let folder: string;
const file = (name: string) => join(folder, name);

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
}

function certify(name: string, more: string[] = []): void {
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    `${name}.key`,
  ];
  const signer = name === 'ca' ? [] : ['-CA', 'ca.pem', '-CAkey', 'ca.key'];
  openssl(
    'req',
    '-x509',
    ...key,
    '-out',
    `${name}.pem`,
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
    ...signer,
    ...more,
  );
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-certificates-'));
  certify('ca');
  certify('server', ['-addext', 'subjectAltName=DNS:engine.internal,IP:127.0.0.1']);
  certify('client');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Speaks TLS before an engine, to those alone whose certificate the authority has signed. */
async function guard(engine: ScriptedEngine): Promise<{ port: number; names: string[] } & Disposable> {
  const names: string[] = [];
  const [cert, key, ca] = ['server.pem', 'server.key', 'ca.pem'].map((name) => readFileSync(file(name)));
  const sockets = new Set<TLSSocket>();
  const server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true }, (socket) => {
    names.push(socket.getPeerCertificate().subject.CN as string);
    sockets.add(socket);
    const inner = connect(engine.port, '127.0.0.1');
    socket.pipe(inner).pipe(socket);
    for (const one of [socket, inner]) one.on('error', () => [socket, inner].map((each) => each.destroy()));
  });
  server.on('tlsClientError', () => undefined); // those who are turned away
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' ? address!.port : 0,
    names,
    [Symbol.dispose]: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A chat through the gateway's https listener, by a caller that trusts the authority. */
function chatOverTls(port: number, model = 'chat'): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { port, method: 'POST', path: '/v1/chat/completions', ca: readFileSync(file('ca.pem')) };
    const sent = request({ host: '127.0.0.1', ...options }, (response) => {
      let body = '';
      response.on('data', (piece) => (body += piece));
      response.on('end', () => resolve({ status: response.statusCode!, body }));
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(chatBody({ model, stream: true })));
  });
}

/** What the certificate of a listener is known by; empty where nobody answers. */
function fingerprint(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', () => resolve(''));
  });
}

const pairOf = (name: string) => ({ cert: file(`${name}.pem`), key: file(`${name}.key`) });

describe('TLS', () => {
  it('takes certificates that were renewed at their paths, its own and those it shows to engines, on SIGHUP', async () => {
    await using engine = await startEngine();
    using guarded = await guard(engine);
    for (const name of ['front', 'back']) certify(name, ['-addext', 'subjectAltName=IP:127.0.0.1']);
    await using armature = await startArmature(
      {
        gateway: { tls: pairOf('front') },
        admin: { tls: pairOf('front') },
        backends: {
          b1: backendOf(`https://127.0.0.1:${guarded.port}/v1`, {
            tls: { ca: file('ca.pem'), ...pairOf('back') },
            probe: { off: true },
          }),
        },
        routes: { chat: { targets: [{ backend: 'b1' }] } },
      },
      { ready: false },
    );
    const both = () => Promise.all([fingerprint(armature.gatewayPort), fingerprint(armature.adminPort)]);
    const before = await eventually(
      'both listen',
      async () => {
        const found = await both();
        return found.every((each) => each !== '') && found;
      },
      20_000,
    );
    expect((await chatOverTls(armature.gatewayPort)).status).toBe(200);
    expect(guarded.names).toEqual(['back']);

    // What is half written is refused by each that reads it, and the one before stays.
    const good = readFileSync(file('front.pem'));
    writeFileSync(file('front.pem'), good.subarray(0, 100));
    armature.kill('supervisor', 'SIGHUP');
    await eventually('both refuse it', () => armature.logs.match(/the one before it stays/g)?.length === 2);
    expect(await both()).toEqual(before);

    certify('front', ['-addext', 'subjectAltName=IP:127.0.0.1']);
    certify('renewed');
    for (const end of ['pem', 'key']) copyFileSync(file(`renewed.${end}`), file(`back.${end}`));
    armature.kill('supervisor', 'SIGHUP');
    await eventually('both show the new one', async () => {
      const [gateway, admin] = await both();
      return gateway === admin && gateway !== '' && gateway !== before[0];
    });
    expect((await chatOverTls(armature.gatewayPort)).status).toBe(200);
    expect(guarded.names).toEqual(['back', 'renewed']);
  });

  it('guards the listener and the way to the engine, with names and certificates of their own', async () => {
    await using engine = await startEngine();
    using guarded = await guard(engine);
    const backend = (tls: Config) =>
      backendOf(`https://127.0.0.1:${guarded.port}/v1`, { tls, probe: { off: true } });
    const pair = { cert: file('client.pem'), key: file('client.key') };
    const named = { ca: file('ca.pem'), serverName: 'engine.internal' };
    await using armature = await startArmature(
      {
        gateway: { tls: { cert: file('server.pem'), key: file('server.key') } },
        backends: {
          good: backend({ ...named, ...pair }),
          nameless: backend({ ...named, ...pair, serverName: 'other.internal' }),
          stranger: backend(named),
          distrustful: backend(pair),
        },
        routes: Object.fromEntries(
          ['good', 'nameless', 'stranger', 'distrustful'].map((name) => [
            name === 'good' ? 'chat' : name,
            { targets: [{ backend: name }] },
          ]),
        ),
      },
      { ready: false },
    );
    let answer = { status: 0, body: '' };
    await expect
      .poll(
        async () => {
          answer = await chatOverTls(armature.gatewayPort).catch(() => answer);
          return answer.status;
        },
        { timeout: 20_000 },
      )
      .toBe(200);
    expect(answer.body).toContain('[DONE]');
    for (const model of ['nameless', 'stranger', 'distrustful']) {
      const refused = await chatOverTls(armature.gatewayPort, model);
      expect([model, refused.status]).toEqual([model, 502]);
    }
    expect(new Set(guarded.names)).toEqual(new Set(['client']));
    expect((await armature.chat()).fault).toBeDefined(); // plain HTTP to an https listener
    expect(engine.posts).toHaveLength(1);
  });
});
