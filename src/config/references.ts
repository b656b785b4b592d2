import { dirname, resolve } from 'node:path';
import type { Fault } from './faults.ts';
import { type ConfigIo, readText } from './files.ts';

/** `${env:NAME}` and `${file:PATH}` inside values; `$${` stands for `${`. */

const REFERENCE = /\$\$\{|\$\{(?:([^{}]*)\})?/g;
/** A secret, a certificate or a prompt; not a place for data. */
const FILE_BYTES_MAX = 256 * 1024;

/** Stands for a reference that could not be resolved, so that no further fault is told of its value. */
export const UNRESOLVED = '\u0000unresolved';

export type Resolved =
  | { text: string; references: number }
  | { fault: Pick<Fault, 'message' | 'expected' | 'found' | 'hint'> };

export const holdsReferences = (text: string): boolean => text.includes('${');

/** Whether a text is one reference and nothing else: such a text may be shown where a secret may not. */
export const isReference = (text: string): boolean => /^\$\{[^{}]*\}$/.test(text);

/** The references in a text, as they are written. */
export function referencesIn(text: string): string[] {
  return [...text.matchAll(REFERENCE)].map(([whole]) => whole).filter((whole) => whole !== '$${');
}

/** Puts values in the place of references. Paths are relative to the folder of `file`. */
export function resolveReferences(text: string, file: string, io: ConfigIo): Resolved {
  let references = 0;
  let fault: Extract<Resolved, { fault: unknown }>['fault'] | undefined;
  const resolved = text.replace(REFERENCE, (whole: string, inside: string | undefined) => {
    if (whole === '$${') return '${';
    references++;
    const got = lookUp(whole, inside, file, io);
    if (typeof got === 'string') return got;
    fault ??= got;
    return '';
  });
  return fault ? { fault } : { text: resolved, references };
}

function lookUp(
  whole: string,
  inside: string | undefined,
  file: string,
  io: ConfigIo,
): string | Pick<Fault, 'message' | 'hint'> {
  const match = /^(env|file):(.+)$/s.exec(inside ?? '');
  if (!match) {
    const named = /^[A-Za-z_][A-Za-z0-9_]*$/.test(inside ?? '') ? `\${env:${inside}}` : undefined;
    return {
      message: `expected \${env:NAME} or \${file:PATH}, found ${JSON.stringify(whole)}`,
      hint: named
        ? `did you mean ${named}? (a plain "\${" is written "$\${")`
        : 'a plain "${" is written "$${"',
    };
  }
  if (io.allowed && !io.allowed.has(whole)) {
    const message = `no configuration file uses ${whole}`;
    return { message, hint: 'a live change may use only references that the files use already' };
  }
  return match[1] === 'env' ? lookUpVariable(match[2]!, io) : lookUpFile(match[2]!, file, io);
}

function lookUpVariable(name: string, io: ConfigIo): string | Pick<Fault, 'message' | 'hint'> {
  const value = io.env[name];
  if (value !== undefined) return value;
  return {
    message: `the environment variable ${name} is not set`,
    hint: `set ${name} where Armature is started`,
  };
}

function lookUpFile(written: string, file: string, io: ConfigIo): string | Pick<Fault, 'message' | 'hint'> {
  const path = resolve(dirname(file), written);
  const got = readText(io, path, FILE_BYTES_MAX);
  if ('text' in got) return got.text.replace(/\r?\n$/, '');
  return {
    message: `the file ${path} ${got.cause}`,
    hint: 'a relative path is taken from the folder of this file',
  };
}
