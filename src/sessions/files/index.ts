import { type Exchange, isCompressed, isGet, type Path } from '../../gateway/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Failure, invalidRequest } from '../../kernel/errors.ts';
import {
  answerJson,
  listObject,
  noSuch,
  nothingAt,
  readExpiry,
  readListQuery,
  unstorable,
  wrongMethod,
} from '../answers.ts';
import { sendContent } from './content.ts';
import type { FileDisk } from './disk.ts';
import { type Form, type FormRefusal, readForm } from './form.ts';
import { fileObject, isPurpose, PURPOSES } from './objects.ts';
import type { FileBounds } from './store/file-operations.ts';
import type { FileStore } from './store/index.ts';
import type { StoredFile } from './store/rows.ts';

/** Uploads that one worker takes at one time. */
const UPLOADS_MAX = 64;
/** And of one tenant. */
const TENANT_UPLOADS_MAX = 16;
/** What a form may have beside its file. */
const FORM_BYTES_MAX = 4 * 2 ** 20;
const TENANT_FILES_MAX = 10_000;
const LIST = { limit: 10_000, limitMax: 10_000 };

export interface FilesOptions {
  store: FileStore;
  disk: FileDisk;
  clock: Clock;
}

/** `/v1/files`: OpenAI's Files API over the store and a folder of the data directory. */
export class Files {
  readonly #store: FileStore;
  readonly #disk: FileDisk;
  readonly #clock: Clock;
  /** The tenants of those that are on their way, one for each. */
  readonly #uploads: string[] = [];

  constructor({ store, disk, clock }: FilesOptions) {
    this.#store = store;
    this.#disk = disk;
    this.#clock = clock;
  }

  take(path: Path, x: Exchange): void {
    this.#answer(path, x).catch((error: unknown) => path.refuse(x, unstorable(error)));
  }

  async #answer(path: Path, x: Exchange): Promise<void> {
    const [, id, tail, more] = x.stateful!.path.slice('/v1'.length).split('/').slice(1);
    const { method } = x.caller;
    const gets = isGet(x.caller);
    if (more !== undefined || (tail !== undefined && tail !== 'content')) path.refuse(x, nothingAt(x));
    else if (id === undefined) {
      if (method === 'POST') this.#upload(path, x);
      else if (gets) await this.#list(path, x);
      else path.refuse(x, wrongMethod(x, 'GET, HEAD, POST'));
    } else if (tail === 'content') {
      if (gets) await this.#content(path, x, id);
      else path.refuse(x, wrongMethod(x, 'GET, HEAD'));
    } else if (gets) {
      const file = await this.#file(id, x.tenant);
      if (file) answerJson(path, x, fileObject(file));
      else path.refuse(x, noSuch('File object', id, 'id'));
    } else if (method === 'DELETE') await this.#remove(path, x, id);
    else path.refuse(x, wrongMethod(x, 'GET, HEAD, DELETE'));
  }

  #file(id: string, tenant: string): Promise<StoredFile | undefined> {
    return this.#store.call('file', { id, tenant, nowMs: this.#clock.wall() });
  }

  async #list(path: Path, x: Exchange): Promise<void> {
    const query = readListQuery(x.caller.target, LIST);
    if ('code' in query) {
      path.refuse(x, query);
      return;
    }
    const found = await this.#store.call('files', {
      ...query,
      tenant: x.tenant,
      nowMs: this.#clock.wall(),
    });
    if (found) answerJson(path, x, listObject(found.items.map(fileObject), found.more));
    else path.refuse(x, noSuch('File object', query.after!, 'after'));
  }

  async #content(path: Path, x: Exchange, id: string): Promise<void> {
    const file = await this.#file(id, x.tenant);
    if (!file) path.refuse(x, noSuch('File object', id, 'id'));
    else if (!x.over) await sendContent(path, x, file, this.#disk.pathOf(id));
  }

  async #remove(path: Path, x: Exchange, id: string): Promise<void> {
    const nowMs = this.#clock.wall();
    const outcome = await this.#store.call('removeFile', { id, tenant: x.tenant, nowMs });
    if (outcome === 'unknown') path.refuse(x, noSuch('File object', id, 'id'));
    else if (outcome === 'in-use') path.refuse(x, inUse(id));
    else {
      await this.#disk.remove(id);
      answerJson(path, x, { id, object: 'file', deleted: true });
    }
  }

  /** The body is still coming: it is read here, to the disk. */
  #upload(path: Path, x: Exchange): void {
    const { incoming } = x.caller;
    const { bytesMax } = path.deps.world.snapshot!.settings.files;
    const refused = this.#whyNot(x, bytesMax);
    if (refused || !incoming) {
      path.refuse(x, refused ?? invalidRequest('An upload needs a body.'));
      return;
    }
    this.#uploads.push(x.tenant);
    x.scope.add(() => this.#uploads.splice(this.#uploads.indexOf(x.tenant), 1));
    const id = this.#disk.newId();
    try {
      this.#disk.prepare();
    } catch (error) {
      path.refuse(x, unstorable(error));
      return;
    }
    const options = { contentType: x.caller.header('content-type')!, path: this.#disk.pathOf(id), bytesMax };
    const abort = readForm(incoming, options, (result) => {
      this.#received(path, x, id, result).catch((error: unknown) => path.refuse(x, unstorable(error)));
    });
    x.scope.add(abort);
  }

  /** What a head tells already. */
  #whyNot(x: Exchange, bytesMax: number): Failure | undefined {
    const { caller } = x;
    if (isCompressed(caller)) return invalidRequest('Compressed request bodies are not read.');
    if (!/^multipart\/form-data(?:\s*;|\s*$)/i.test(caller.header('content-type') ?? ''))
      return {
        ...invalidRequest(
          "A file is uploaded as a form: expected 'content-type: multipart/form-data; boundary=...'.",
        ),
        status: 415,
      };
    if (Number(caller.header('content-length') ?? 0) > bytesMax + FORM_BYTES_MAX) return tooLarge(bytesMax);
    const own = this.#uploads.filter((tenant) => tenant === x.tenant).length;
    if (own >= TENANT_UPLOADS_MAX || this.#uploads.length >= UPLOADS_MAX)
      return {
        code: 'overloaded',
        message: `${own} uploads of yours, and ${this.#uploads.length} in all, are on their way already.`,
        phase: 'before-queue',
        retryAfterSeconds: 2,
      };
    return undefined;
  }

  async #received(path: Path, x: Exchange, id: string, result: Form | FormRefusal): Promise<void> {
    const { files } = path.deps.world.snapshot!.settings;
    const refused = result === 'too-large' ? tooLarge(files.bytesMax) : refusalOf(result);
    if (refused) {
      path.refuse(x, refused);
      return;
    }
    const form = result as Form;
    const file = this.#fileOf(form, id, x.tenant);
    const kept = 'code' in file ? file : await this.#keep(file, files);
    if (!('code' in kept)) {
      answerJson(path, x, fileObject(kept));
      return;
    }
    if (form.file) await this.#disk.remove(id);
    path.refuse(x, kept);
  }

  async #keep(file: StoredFile, limits: Omit<FileBounds, 'tenantFilesMax'>): Promise<StoredFile | Failure> {
    try {
      const bounds = { ...limits, tenantFilesMax: TENANT_FILES_MAX };
      const outcome = await this.#store.call('addFile', { file, bounds });
      return outcome === 'added' ? file : noRoom(outcome);
    } catch (error) {
      return unstorable(error);
    }
  }

  #fileOf({ fields, file }: Form, id: string, tenant: string): StoredFile | Failure {
    const purpose = fields.get('purpose');
    if (purpose === undefined) return invalidRequest("The field 'purpose' is missing.", 'purpose');
    if (!isPurpose(purpose))
      return invalidRequest(
        `'${purpose.slice(0, 100)}' is not one of ${PURPOSES.map((each) => `'${each}'`).join(', ')}.`,
        'purpose',
      );
    if (!file) return invalidRequest("The form has no file named 'file'.", 'file');
    const createdMs = this.#clock.wall();
    let expiresMs: number | undefined;
    const [anchor, after] = [fields.get('expires_after[anchor]'), fields.get('expires_after[seconds]')];
    if (anchor !== undefined || after !== undefined) {
      const expiry = readExpiry(anchor, after, 'expires_after');
      if ('code' in expiry) return expiry;
      expiresMs = createdMs + expiry.keptMs;
    }
    return { id, tenant, purpose, filename: file.filename, bytes: file.bytes, createdMs, expiresMs };
  }
}

function refusalOf(result: Form | Exclude<FormRefusal, 'too-large'>): Failure | undefined {
  if ('wrong' in result) return invalidRequest(`The form cannot be read: ${result.wrong}.`);
  return 'disk' in result ? unstorable(result.disk) : undefined;
}

function tooLarge(bytesMax: number): Failure {
  return {
    code: 'body_too_large',
    message: `The file is larger than the ${bytesMax} bytes that one may have (files.bytesMax).`,
    phase: 'before-queue',
    param: 'file',
    shouldRetry: false,
  };
}

function inUse(id: string): Failure {
  return {
    code: 'conflict',
    message: `A batch that is not over reads ${id}: cancel it, or wait for its end.`,
    phase: 'before-queue',
    shouldRetry: false,
  };
}

function noRoom(why: 'tenant-full' | 'disk-full'): Failure {
  const whose = why === 'tenant-full' ? 'Your files are' : 'The files of all tenants are';
  const limit = why === 'tenant-full' ? 'files.tenantBytesMax' : 'files.totalBytesMax';
  return {
    code: why === 'tenant-full' ? 'quota_exceeded' : 'overloaded',
    message: `${whose} as many, or as large together, as may be kept (${limit}): delete some first.`,
    phase: 'before-queue',
    retryAfterSeconds: 60,
    shouldRetry: false,
  };
}
