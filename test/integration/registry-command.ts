import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main } from '../../src/cli/program.ts';
import type { ControlProcess } from './control-process.ts';

/** Versions and decisions by their commands, against a control process. */

const BACKEND = { engine: 'openai', model: 'm', endpoints: ['http://127.0.0.1:9/v1'], probe: { off: true } };
export const config = (registry: object, version?: string) => ({
  registry,
  backends: { far: { ...BACKEND, ...(version && { version }) } },
  routes: { chat: { targets: [{ backend: 'far' }] } },
});
const TRAINING = { unknown: 'made for a test' };
export const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** Runs the command as it is typed; JSON lines of stdout are read. */
export async function run(control: Pick<ControlProcess, 'token' | 'adminPort'>, ...argv: string[]) {
  const [lines, notes]: [string[], string[]] = [[], []];
  const output = {
    tty: false,
    print: (text: string) => void lines.push(text),
    write: (text: string) => void lines.push(text),
    json: (value: unknown) => void lines.push(JSON.stringify(value)),
    note: (text: string) => void notes.push(text),
  };
  process.env.ARMATURE_ADMIN_TOKEN = control.token;
  const code = await main([...argv, '--admin', `http://127.0.0.1:${control.adminPort}`], output);
  const said = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  return { code, text: lines.join('\n'), last: said.at(-1), notes: notes.join('\n') };
}

/** Files of a model in a folder of their own, with a manifest. */
export class Files {
  readonly folder = mkdtempSync(join(tmpdir(), 'armature-model-'));

  write(name: string, content: Buffer | string): string {
    const path = join(this.folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  /** The arguments that add these files as a version. */
  version(name: string, files: Record<string, Buffer | string>, manifest: object = {}): string[] {
    const said = this.write(`manifest-${name}.yaml`, JSON.stringify({ training: TRAINING, ...manifest }));
    const paths = Object.entries(files).flatMap(([path, content]) => ['--file', this.write(path, content)]);
    return ['registry', 'add', name, '--manifest', said, ...paths];
  }
}
