import { type Exchange, isGet, type Path } from '../../gateway/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Failure, invalidRequest } from '../../kernel/errors.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import {
  answerJson,
  listObject,
  noSuch,
  nothingAt,
  readListQuery,
  unstorable,
  wrongMethod,
} from '../answers.ts';
import type { FileStore } from '../files/store/index.ts';
import { Refused } from '../refused.ts';
import { batchObject } from './objects.ts';
import { readBatchRequest } from './request.ts';
import type { BatchRunner } from './runner.ts';

/** Batches of one tenant that are not over. */
const TENANT_OPEN_MAX = 100;
const LIST = { limit: 20, limitMax: 100 };

export interface BatchesOptions {
  store: FileStore;
  runner: BatchRunner;
  clock: Clock;
  random: Random;
}

/** `/v1/batches`: OpenAI's Batch API over files of requests, which workers ask of the path. */
export class Batches {
  readonly #store: FileStore;
  readonly #runner: BatchRunner;
  readonly #clock: Clock;
  readonly #newId: (wallMs: number) => string;

  constructor({ store, runner, clock, random }: BatchesOptions) {
    this.#store = store;
    this.#runner = runner;
    this.#clock = clock;
    this.#newId = idMaker('batch', random);
  }

  start(path: Path): void {
    this.#runner.start(path);
  }

  drain(): void {
    this.#runner.drain();
  }

  close(): Promise<void> {
    return this.#runner.close();
  }

  take(path: Path, x: Exchange): void {
    this.#answer(path, x).catch((error: unknown) => {
      path.refuse(x, error instanceof Refused ? error.failure : unstorable(error));
    });
  }

  async #answer(path: Path, x: Exchange): Promise<void> {
    const [, id, tail, more] = x.stateful!.path.slice('/v1'.length).split('/').slice(1);
    const { method } = x.caller;
    const gets = isGet(x.caller);
    if (more !== undefined || (tail !== undefined && tail !== 'cancel')) path.refuse(x, nothingAt(x));
    else if (id === undefined) {
      if (method === 'POST') await this.#create(path, x);
      else if (gets) await this.#list(path, x);
      else path.refuse(x, wrongMethod(x, 'GET, HEAD, POST'));
    } else if (tail === 'cancel') {
      if (method === 'POST') await this.#cancel(path, x, id);
      else path.refuse(x, wrongMethod(x, 'POST'));
    } else if (gets) {
      const batch = await this.#store.call('batch', { id, tenant: x.tenant });
      if (batch) answerJson(path, x, batchObject(batch));
      else path.refuse(x, noSuch('batch', id));
    } else path.refuse(x, wrongMethod(x, 'GET, HEAD'));
  }

  async #create(path: Path, x: Exchange): Promise<void> {
    const { windowMs, ...asked } = readBatchRequest(x.caller.body);
    const createdMs = this.#clock.wall();
    const id = this.#newId(createdMs);
    const batch = await this.#store.call('addBatch', {
      batch: { ...asked, id, tenant: x.tenant, createdMs, expiresMs: createdMs + windowMs },
      tenantOpenMax: TENANT_OPEN_MAX,
    });
    if (typeof batch === 'string') {
      path.refuse(x, whyNot(batch, asked.inputFile));
      return;
    }
    this.#runner.tell('batch-created', batch);
    answerJson(path, x, batchObject(batch));
    this.#runner.poke();
  }

  async #list(path: Path, x: Exchange): Promise<void> {
    const query = readListQuery(x.caller.target, LIST);
    if ('code' in query) {
      path.refuse(x, query);
      return;
    }
    const { limit, after } = query;
    const found = await this.#store.call('batches', { tenant: x.tenant, limit, after });
    if (found) answerJson(path, x, listObject(found.items.map(batchObject), found.more));
    else path.refuse(x, noSuch('batch', after!, 'after'));
  }

  /** Asked again, it says how the batch stands; one that came to its end by itself cannot be cancelled any more. */
  async #cancel(path: Path, x: Exchange, id: string): Promise<void> {
    const batch = await this.#store.call('cancelBatch', { id, tenant: x.tenant, nowMs: this.#clock.wall() });
    if (!batch) path.refuse(x, noSuch('batch', id));
    else if (batch.status === 'cancelling' || batch.status === 'cancelled') {
      answerJson(path, x, batchObject(batch));
      this.#runner.poke();
    } else
      path.refuse(x, {
        code: 'conflict',
        message: `A batch that is ${batch.status} cannot be cancelled.`,
        phase: 'before-queue',
        shouldRetry: false,
      });
  }
}

function whyNot(why: 'no-file' | 'other-purpose' | 'empty-file' | 'too-many', file: string): Failure {
  const param = 'input_file_id';
  switch (why) {
    case 'no-file':
      return noSuch('File object', file, param);
    case 'other-purpose':
      return invalidRequest("The file was not uploaded with the purpose 'batch'.", param);
    case 'empty-file':
      return invalidRequest('The file is empty.', param);
    case 'too-many':
      return {
        code: 'quota_exceeded',
        message: `${TENANT_OPEN_MAX} batches of yours are not over yet.`,
        phase: 'before-queue',
        retryAfterSeconds: 60,
        shouldRetry: false,
      };
  }
}
