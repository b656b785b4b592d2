import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { readProvision } from '../engines/provisioned.ts';
import { findSpark } from '../engines/spark.ts';
import { plainConfig, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { answerByPath } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';
import { pause } from '../upstream/waiting.ts';
import { answersAsked } from './batch-world.ts';

/** examples/spark on a real local Spark. */

const examples = join(import.meta.dirname, '../../examples/spark');
const ROWS = 120;
const SPARK_MS = 180_000;

async function python(args: string[], env: Record<string, string> = {}): Promise<string> {
  const { python: command } = readProvision();
  const { stdout } = await promisify(execFile)(command, args, {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYSPARK_PYTHON: command, ...env },
    timeout: SPARK_MS,
  });
  return stdout;
}

async function articles(...args: string[]): Promise<Json> {
  const spark = findSpark();
  if (typeof spark === 'string') throw new Error(spark);
  const env = { PYTHONPATH: spark.packages, JAVA_HOME: spark.javaHome };
  const more = ['--json', '--rows', String(ROWS), '--partitions', '2'];
  const said = await python([join(examples, 'articles.py'), ...args, ...more], env);
  return JSON.parse(said.trim().split('\n').at(-1)!);
}

const address = (armature: { gatewayPort: number }) => `http://127.0.0.1:${armature.gatewayPort}`;

describe('the Spark client', () => {
  beforeEach((context) => {
    const spark = findSpark();
    if (typeof spark === 'string') context.skip(spark);
  });

  it('waits out refusals, leaves out what is bad, and has each row answered once', {
    timeout: SPARK_MS,
  }, async () => {
    let answered = 0;
    const script: Script = async (x) => {
      const { input } = x.request.json() as { input: string[] };
      await pause(50); // long enough for the others to find the tenant's places taken
      if (input.some((text) => text.includes('Core Model Basics'))) {
        return x.json({ error: { message: 'too basic' } }, { status: 422 });
      }
      answered += input.length;
      return answerByPath(x);
    };
    await using engine = await startEngine(script);
    const limits = { concurrency: 2 };
    await using armature = await startArmature(
      plainConfig(engine, { top: { tenants: { web: { limits } } } }),
    );
    const key = await armature.key('web');
    const figures = await articles(address(armature), '--model', 'chat', '--key', key, '--together', '4');

    const { rows, answers, ids, joined, failed, waits } = figures;
    expect({ rows, answers, ids, joined }).toEqual({ rows: ROWS, answers: ROWS, ids: ROWS, joined: ROWS });
    expect(failed).toBe(ROWS - answered);
    expect(failed).toBeLessThan(4);
    expect(engine.peak).toBeLessThanOrEqual(2);
    expect(waits).toBeGreaterThan(0);
    await armature.idle();
  });

  it('has rows answered as lines of batches', { timeout: SPARK_MS }, async () => {
    await using engine = await startEngine(answersAsked());
    await using armature = await startArmature(plainConfig(engine));
    const figures = await articles(address(armature), '--mode', 'batches');
    const { rows, answers, ids, joined, failed } = figures;
    expect({ rows, answers, ids, joined }).toEqual({ rows: ROWS, answers: ROWS, ids: ROWS, joined: ROWS });
    expect(failed).toBe(0);
    expect(engine.posts).toHaveLength(ROWS);
  });

  it('finds the batch of the task before it', async () => {
    await using engine = await startEngine(answersAsked());
    await using armature = await startArmature(plainConfig(engine));
    const task = `
import sys, json
from collections import namedtuple
from armature_spark import Armature
Row = namedtuple("Row", ["id", "text"])
rows = [Row(f"r{i}", f"text {i}") for i in range(20)]
def chat(row):
    return {"model": "chat", "messages": [{"role": "user", "content": row.text}]}
through = Armature(sys.argv[1]).batches(chat, job="j", lines=15, poll_s=0.1)
again = [list(through(iter(each))) for each in (rows, rows[14::-1] + rows[15:])]
print(json.dumps([[answer.id, json.loads(answer.value)["choices"][0]["message"]["content"]] for answer in again[1]]))
print(sorted(again[0]) == sorted(again[1]))
`;
    const said = await python(['-c', task, address(armature)], { PYTHONPATH: examples });
    const [answers, same] = said.trim().split('\n');
    expect(same).toBe('True');
    expect(Object.fromEntries(JSON.parse(answers!))['r7']).toBe('answer:text 7');
    expect(engine.posts).toHaveLength(20);
  });
});
