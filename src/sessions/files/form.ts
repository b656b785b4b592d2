import { createWriteStream, rm, type WriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';

/** Fields beside the file, and the bytes of each. */
const FIELDS_MAX = 32;
const FIELD_BYTES_MAX = 64 * 1024;
const HEADER_BYTES_MAX = 16 * 1024;
const FILENAME_CHARACTERS_MAX = 1024;

export interface Form {
  fields: Map<string, string>;
  /** The file named `file`, whose bytes are on the disk; undefined where the form has none. */
  file: { filename: string; bytes: number } | undefined;
}

/** Why a form was not taken: it cannot be read (in words), its file is too large, or the disk did not take it. */
export type FormRefusal = { wrong: string } | 'too-large' | { disk: Error };

export interface FormOptions {
  contentType: string;
  /** Where the file's bytes go; nothing may be there. */
  path: string;
  bytesMax: number;
}

/**
 * Reads a form as it comes, its file to the disk, no faster than that takes it. Calls back once, when everything is on the
 * disk, or when it will not be: then nothing of it stays there. Gives back what ends it early; no call follows.
 */
export function readForm(
  incoming: Readable,
  options: FormOptions,
  callback: (result: Form | FormRefusal) => void,
): () => void {
  const reading = new FormReading(incoming, options, callback);
  return () => reading.abort();
}

class FormReading {
  readonly #incoming: Readable;
  readonly #options: FormOptions;
  readonly #callback: (result: Form | FormRefusal) => void;
  readonly #form: Form = { fields: new Map(), file: undefined };
  #boy: BusboyInstance | undefined;
  #out: WriteStream | undefined;
  #over = false;
  /** The form has been read to its end; the file may still be on its way to the disk. */
  #read = false;
  #written = true;

  constructor(incoming: Readable, options: FormOptions, callback: (result: Form | FormRefusal) => void) {
    this.#incoming = incoming;
    this.#options = options;
    this.#callback = callback;
    try {
      this.#boy = this.#open();
    } catch (error) {
      this.#refuse({ wrong: (error as Error).message });
      return;
    }
    incoming.pipe(this.#boy);
  }

  #open(): BusboyInstance {
    const headers = { 'content-type': this.#options.contentType } as BusboyHeaders;
    const boy = new Busboy({
      headers,
      limits: {
        fields: FIELDS_MAX,
        fieldSize: FIELD_BYTES_MAX,
        files: 1,
        fileSize: this.#options.bytesMax + 1,
        parts: FIELDS_MAX + 1,
        headerPairs: 32,
        headerSize: HEADER_BYTES_MAX,
      },
    });
    boy.on('field', (name, value, _nameCut, valueCut) => {
      if (valueCut)
        this.#refuse({ wrong: `the field '${shown(name)}' is longer than ${FIELD_BYTES_MAX} bytes` });
      else this.#form.fields.set(String(name), value);
    });
    boy.on('file', (name, stream, filename) => this.#take(name, stream, filename));
    boy.on('filesLimit', () => this.#refuse({ wrong: 'it has more than one file' }));
    boy.on('fieldsLimit', () => this.#refuse({ wrong: `it has more than ${FIELDS_MAX} fields` }));
    boy.on('partsLimit', () => this.#refuse({ wrong: `it has more than ${FIELDS_MAX} fields` }));
    boy.on('error', (error) => this.#refuse({ wrong: (error as Error).message }));
    boy.on('finish', () => {
      this.#read = true;
      this.#settle();
    });
    return boy;
  }

  #take(name: string | undefined, stream: Readable, filename: string | undefined): void {
    stream.on('error', (error) => this.#refuse({ wrong: error.message }));
    if (name !== 'file' || this.#over) {
      if (!this.#over) this.#refuse({ wrong: `the file is named '${shown(name)}', not 'file'` });
      stream.resume();
      return;
    }
    const given = filename === undefined || filename === '' ? 'file' : filename;
    if (given.length > FILENAME_CHARACTERS_MAX) {
      this.#refuse({ wrong: `the filename is longer than ${FILENAME_CHARACTERS_MAX} characters` });
      stream.resume();
      return;
    }
    const file = { filename: given, bytes: 0 };
    this.#form.file = file;
    this.#written = false;
    // On the disk before it is told to be kept.
    const out = createWriteStream(this.#options.path, { flags: 'wx', mode: 0o600, flush: true });
    this.#out = out;
    out.on('error', (error) => this.#refuse({ disk: error }));
    out.on('close', () => {
      file.bytes = out.bytesWritten;
      this.#written = true;
      this.#settle();
    });
    stream.on('limit', () => this.#refuse('too-large'));
    stream.pipe(out);
  }

  #settle(): void {
    if (this.#over || !this.#read || !this.#written) return;
    this.#over = true;
    const { file } = this.#form;
    if (file && file.bytes > this.#options.bytesMax) {
      this.#discard();
      this.#callback('too-large');
    } else this.#callback(this.#form);
  }

  #refuse(why: FormRefusal): void {
    if (this.#over) return;
    this.abort();
    this.#callback(why);
  }

  /** Once it is closed: until then it may yet be made. */
  #discard(): void {
    const out = this.#out;
    if (!out) return;
    const remove = () => rm(this.#options.path, { force: true }, () => undefined);
    if (out.closed) remove();
    else out.on('close', remove).destroy();
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    const boy = this.#boy;
    this.#incoming.unpipe();
    // It may still tell of errors that nobody asks for any more.
    boy?.on('error', () => undefined);
    this.#discard();
    // The rest of the body goes nowhere; whoever answers decides how much of it is waited for.
    this.#incoming.resume();
  }
}

function shown(name: string | undefined): string {
  return String(name ?? '').slice(0, 100);
}
