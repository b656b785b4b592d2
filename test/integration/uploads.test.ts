import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Armature, type Config, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

const BOUNDARY = 'fence';
const TYPE = ['content-type', `multipart/form-data; boundary=${BOUNDARY}`] as const;
const HEAD = Buffer.from(
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n` +
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`,
);
const TAIL = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);

async function world(more: Config = {}) {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine());
  const armature = stack.use(await startArmature(plainConfig(engine, { top: more })));
  return { armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Sends the beginning of a request, and gives the answer that comes of it. */
function begin(client: RawClient, text: string): Answer {
  const answer = client.expect();
  client.send(text);
  return answer;
}

/** The head of a request whose body is still to come. */
function head(armature: Armature, ...headers: string[]): string {
  return [
    'POST /v1/files HTTP/1.1',
    `host: 127.0.0.1:${armature.gatewayPort}`,
    `${TYPE[0]}: ${TYPE[1]}`,
    ...headers,
    '\r\n',
  ].join('\r\n');
}

const kept = (armature: Armature) => {
  const folder = join(armature.data, 'files');
  return existsSync(folder) ? readdirSync(folder) : [];
};

describe('uploads', () => {
  it('may be far larger than any other body, and are not held in memory', async () => {
    await using it = await world({ gateway: { bodyBytesMax: '1MiB', bufferBytesMax: '8MiB' } });
    const { armature } = it;
    const bytes = 150 * 2 ** 20;
    const body = Buffer.concat([HEAD, Buffer.alloc(bytes, 'line\n'), TAIL]);
    const answer = await armature.ask({ path: '/v1/files', body, headers: [TYPE] }, 60_000);
    expect(answer.status).toBe(200);
    const file = JSON.parse(answer.content.toString());
    expect(file.bytes).toBe(bytes);
    expect(statSync(join(armature.data, 'files', file.id)).mode & 0o777).toBe(0o600);
    const content = await armature.ask({ method: 'GET', path: `/v1/files/${file.id}/content` }, 60_000);
    expect(content.content.equals(body.subarray(HEAD.length, HEAD.length + bytes))).toBe(true);
    await armature.idle();
  });

  it('are refused by their head alone: of strangers, and too large', async () => {
    await using it = await world({ files: { bytesMax: '1MiB' }, tenants: { web: {} } });
    const { armature } = it;
    const key = await armature.key('web');
    for (const [headers, status] of [
      [['content-length: 1000000'], 401],
      [[`authorization: Bearer ${key}`, 'content-length: 9000000'], 413],
    ] as const) {
      using client = await RawClient.open(armature.gatewayPort);
      const answer = begin(client, head(armature, ...headers));
      await answer.whole();
      expect([answer.status, answer.header('connection')]).toEqual([status, 'close']);
    }
    const body = Buffer.concat([HEAD, Buffer.alloc(2 ** 20 + 1), TAIL]);
    const authorization = ['authorization', `Bearer ${key}`] as const;
    const answer = await armature.ask({ path: '/v1/files', body, headers: [TYPE, authorization] });
    expect([answer.status, answer.error.code]).toEqual([413, 'body_too_large']);
    await eventually('nothing is left', () => kept(armature).length === 0);
    await armature.idle();
  });

  it('that are broken off leave nothing, and do not hold up a drain', async () => {
    await using it = await world({ gateway: { drain: '1s' } });
    const { armature } = it;
    {
      using client = await RawClient.open(armature.gatewayPort);
      begin(client, `${head(armature, 'content-length: 1000000')}${HEAD}${'x'.repeat(10_000)}`);
      await eventually('it is on its way', () => kept(armature).length === 1);
      client.leave('reset');
    }
    await eventually('nothing is left', () => kept(armature).length === 0);
    using client = await RawClient.open(armature.gatewayPort);
    const answer = begin(client, `${head(armature, 'content-length: 1000000')}${HEAD}xyz`);
    await eventually('it is on its way', () => kept(armature).length === 1);
    expect(await armature.stop()).toBe(0);
    expect((await answer.whole()).status).toBe(503);
    expect(kept(armature)).toEqual([]);
  });

  it('are kept within what a tenant may have', async () => {
    await using it = await world({ files: { tenantBytesMax: '1KiB' } });
    const { armature } = it;
    const body = Buffer.concat([HEAD, Buffer.alloc(600), TAIL]);
    const ask = () => armature.ask({ path: '/v1/files', body, headers: [TYPE] });
    expect((await ask()).status).toBe(200);
    const refused = await ask();
    expect([refused.status, refused.error.code]).toEqual([429, 'quota_exceeded']);
    expect(kept(armature)).toHaveLength(1);
  });
});
