import { BadRequestError, ConflictError, NotFoundError, toFile } from 'openai';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { plainConfig } from '../upstream/armature.ts';
import { failWith } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import {
  answersAsked,
  askedOf,
  batchEnd,
  batchLine,
  batchWorld,
  jsonLines,
  linesOf,
  ONCE,
  offOnce,
  startBatch,
} from './batch-world.ts';

const lines = (count: number) => Array.from({ length: count }, (_, i) => batchLine(i));

describe('files and batches, by the package of OpenAI', () => {
  it('uploads, runs, and gives back; what is over is told as it is', async () => {
    await using it = await batchWorld(answersAsked());
    const { openai, engine } = it;
    const text = `\uFEFF${jsonLines(lines(30)).replaceAll('\n', '\r\n\r\n')}${JSON.stringify(batchLine(30))}`;
    const file = await openai.files.create({
      purpose: 'batch',
      file: await toFile(Buffer.from(text), '问 é.jsonl'),
    });
    expect(file).toMatchObject({ filename: '问 é.jsonl', bytes: Buffer.byteLength(text), purpose: 'batch' });
    const made = await openai.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: { job: 'nightly' },
    });
    const batch = await batchEnd(openai, made.id);
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 31, completed: 31, failed: 0 },
      metadata: { job: 'nightly' },
    });
    const output = await linesOf(openai, batch.output_file_id);
    expect(offOnce(output, 31)).toEqual(ONCE);
    for (const { custom_id: id, response } of output) {
      expect(response.body.choices[0].message.content).toBe(`answer:question ${id.slice(2)}`);
    }
    expect(engine.posts).toHaveLength(31);
    expect((await openai.batches.list()).data.map(({ id }) => id)).toEqual([batch.id]);
    const listed = [];
    for await (const each of openai.files.list({ limit: 1 })) listed.push(each.id);
    expect(listed).toEqual([batch.output_file_id, file.id]);
    await expect(openai.batches.cancel(batch.id)).rejects.toBeInstanceOf(ConflictError);
    expect(await openai.files.delete(file.id)).toMatchObject({ id: file.id, deleted: true });
    await expect(openai.files.retrieve(file.id)).rejects.toBeInstanceOf(NotFoundError);
    await it.armature.idle();
    const samples = await it.armature.metrics();
    expect(samples.filter(({ name, value }) => name === 'armature_batches' && value !== 0)).toEqual([]);
    const why = await it.armature.why(batch.id);
    const codes: string[] = why.steps.map(({ code }: { code: string }) => code);
    expect(codes.slice(-3)).toEqual(['batch-completed', 'batch-began', 'batch-created']);
  });

  it('tells what is wrong with a file, line by line, before any of it is asked', async () => {
    await using it = await batchWorld(answersAsked());
    const { openai, engine } = it;
    const bad = [
      '{nope',
      '[]',
      batchLine(0),
      batchLine(3, 'a', { url: '/v1/embeddings' }),
      batchLine(4, 'a', { body: { model: 'nobody' } }),
    ];
    const made = await startBatch(openai, jsonLines([batchLine(0), '', ...bad]));
    const batch = await batchEnd(openai, made.id);
    expect(batch.status).toBe('failed');
    expect(batch.errors!.data!.map(({ code, line }) => [line, code])).toEqual([
      [3, 'invalid_json_line'],
      [4, 'invalid_json_line'],
      [5, 'duplicate_custom_id'],
      [6, 'invalid_url'],
      [7, 'model_not_found'],
    ]);
    await expect(startBatch(openai, '')).rejects.toBeInstanceOf(BadRequestError);
    const twice = new Blob(['{"input_file_id":"a","input_file_id":"b"}'], { type: 'application/json' });
    await expect(openai.post('/batches', { body: twice })).rejects.toMatchObject({
      status: 400,
      param: 'input_file_id',
    });
    expect(engine.posts).toHaveLength(0);
  });

  it('keeps a file that a running batch reads, and ends it when it is cancelled', async () => {
    const gate = Promise.withResolvers<void>();
    await using it = await batchWorld(async (x) => {
      await gate.promise;
      await answersAsked()(x);
    });
    const { openai, engine, armature } = it;
    const made = await startBatch(openai, jsonLines(lines(20)));
    await engine.posted(1);
    await expect(openai.files.delete(made.input_file_id)).rejects.toBeInstanceOf(ConflictError);
    const cancelled = await openai.batches.cancel(made.id);
    expect(cancelled.status).toBe('cancelling');
    const begun = engine.posts.length;
    gate.resolve();
    const batch = await batchEnd(openai, made.id);
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { completed: begun, failed: 0 } });
    expect(engine.posts).toHaveLength(begun);
    expect(await linesOf(openai, batch.output_file_id)).toHaveLength(begun);
    await openai.files.delete(made.input_file_id);
    await armature.idle();
  });
});

describe('what is waited out', () => {
  it('an engine that fails, refuses and dies for a while fails no line', async () => {
    let asked = 0;
    await using it = await batchWorld(
      async (x) => {
        const turn = asked++ % 4;
        if (asked > 60 || turn === 3) await answersAsked()(x);
        else if (turn === 0) await failWith(500)(x);
        else if (turn === 1) await failWith(429, [['retry-after', '1']])(x);
        else x.reset();
      },
      { route: { retry: { attempts: 1 } } },
    );
    const { openai } = it;
    const made = await startBatch(openai, jsonLines(lines(40)));
    const batch = await batchEnd(openai, made.id, 90_000);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 40, failed: 0 } });
    expect(offOnce(await linesOf(openai, batch.output_file_id), 40)).toEqual(ONCE);
  }, 120_000);

  it("a tenant's own limit", async () => {
    await using it = await batchWorld(answersAsked(), {
      top: { tenants: { web: { limits: { requests: '20/s', concurrency: 3 } } } },
    });
    const { armature, engine } = it;
    const openai = it.openai.withOptions({ apiKey: await armature.key('web') });
    const made = await startBatch(openai, jsonLines(lines(60)));
    const batch = await batchEnd(openai, made.id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 60, failed: 0 } });
    expect(engine.peak).toBeLessThanOrEqual(3);
  });

  it('a conversation that several lines go on with, and each has its turn', async () => {
    await using it = await batchWorld(answersAsked(20));
    const { openai, engine } = it;
    const { id: conversation } = await openai.conversations.create();
    const url = '/v1/responses';
    const turns = Array.from({ length: 6 }, (_, i) =>
      batchLine(i, '', { url, body: { model: 'chat', input: `question ${i}`, conversation } }),
    );
    const made = await startBatch(openai, jsonLines(turns), url);
    const batch = await batchEnd(openai, made.id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 6, failed: 0 } });
    expect(engine.posts.map((post) => post.json().messages.length)).toEqual([1, 3, 5, 7, 9, 11]);
  });

  it('a route that is removed is an error of its lines, and none of the batch', async () => {
    await using it = await batchWorld(answersAsked(50), { backend: { limits: { concurrency: 2 } } });
    const { openai, armature, engine } = it;
    const made = await startBatch(openai, jsonLines(lines(200)));
    await engine.posted(10);
    const config = plainConfig(engine);
    await armature.configure({ ...config, routes: { other: config['routes'].chat } });
    armature.kill('supervisor', 'SIGHUP');
    const batch = await batchEnd(openai, made.id);
    expect(batch.status).toBe('completed');
    const { completed, failed } = batch.request_counts!;
    expect(completed + failed).toBe(200);
    const errors = await linesOf(openai, batch.error_file_id);
    expect(errors).toHaveLength(failed);
    expect(errors[0].response.body.error.code).toBe('unknown_route');
    expect(offOnce([...errors, ...(await linesOf(openai, batch.output_file_id))], 200)).toEqual(ONCE);
  });
});

describe('kill -9', () => {
  it.each([
    ['of everything, and another start', 1, 'all'],
    ['of a worker, whose batch another one runs on', 2, 'worker'],
  ] as const)(
    '%s: each line once, and only those in flight asked again',
    async (_, workers, what) => {
      const count = 1200;
      await using it = await batchWorld(answersAsked(5), { top: { gateway: { workers } } });
      const { openai, armature, engine } = it;
      const random = seededRandom(11);
      let counted = 0;
      const grows = ({ request_counts: counts }: { request_counts?: { completed: number } }) => {
        expect(counts!.completed).toBeGreaterThanOrEqual(counted);
        counted = counts!.completed;
      };
      const made = await startBatch(openai, jsonLines(lines(count)));
      let kills = 0;
      while (kills < 3) {
        const at = engine.posts.length + 50 + Math.floor(random.next() * 200);
        await eventually('more lines are asked', () => engine.posts.length >= at, 20_000);
        if (what === 'all') {
          for (const { pid } of armature.parts()) process.kill(pid, 'SIGKILL');
          await eventually('all are dead', () => armature.parts().length === 0);
          await armature.up();
        } else {
          armature.kill(`gateway-${kills % 2}`);
        }
        kills++;
      }
      const batch = await batchEnd(openai, made.id, 60_000, grows);
      expect(batch).toMatchObject({
        status: 'completed',
        request_counts: { total: count, completed: count, failed: 0 },
      });
      const output = await linesOf(openai, batch.output_file_id);
      expect(offOnce(output, count)).toEqual(ONCE);
      expect(engine.posts.length).toBeLessThanOrEqual(count + 60 * kills);
      const asked = new Map<string, number>();
      for (const post of engine.posts) asked.set(askedOf(post), (asked.get(askedOf(post)) ?? 0) + 1);
      expect(asked.size).toBe(count);
      await armature.idle();
    },
    120_000,
  );
});
