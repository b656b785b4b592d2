import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { enginesFolder } from './provisioned.ts';

/** Spark, which examples/spark is tested on: pyspark, which comes as a source package of 450 MB, and a Java. */

const requirements = join(import.meta.dirname, 'requirements-spark.txt');
const JAVAS = '/usr/lib/jvm';
/** Spark's own words: 17 and 21. From 24 on what Hadoop asks for is gone. */
const [JAVA_MIN, JAVA_MAX] = [17, 23];

export interface Spark {
  /** Where pyspark lies. */
  packages: string;
  javaHome: string;
}

/** What is there; a text says why it is not. */
export function findSpark(): Spark | string {
  const packages = sparkFolder();
  if (!existsSync(packages)) return 'pyspark is not provisioned: run `npm test -- engines` first';
  const javaHome = findJava();
  if (javaHome === undefined) {
    return `Spark needs Java ${JAVA_MIN} to ${JAVA_MAX}; on Debian: apt-get install openjdk-17-jre-headless`;
  }
  return { packages, javaHome };
}

/** Brings in what is missing. */
export function provisionSpark(python: string, installDebian: (name: string) => boolean): Spark | string {
  if (findJava() === undefined) installDebian('openjdk-17-jre-headless');
  const folder = sparkFolder();
  if (!existsSync(folder)) {
    console.log('Fetching pyspark from PyPI (about a minute, 500 MB on disk) ...');
    const scratch = `${folder}.${process.pid}`;
    mkdirSync(scratch, { recursive: true });
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-compile', '--no-cache-dir'];
    const { status } = spawnSync(
      python,
      [...pip, '--root-user-action=ignore', '--target', scratch, '-r', requirements],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
    // Only a whole one gets its name; another run may have been faster.
    if (status === 0 && !existsSync(folder)) renameSync(scratch, folder);
    rmSync(scratch, { recursive: true, force: true });
    if (status !== 0) return 'pip could not install pyspark; what it says stands above';
    removeOthers(folder);
  }
  return findSpark();
}

function sparkFolder(): string {
  const stamp = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16);
  return join(enginesFolder(), `spark-${stamp}`);
}

/** The home of a Java that Spark runs on. */
function findJava(): string | undefined {
  const installed = existsSync(JAVAS) ? readdirSync(JAVAS).sort() : [];
  const homes = [process.env['JAVA_HOME'], ...installed.map((name) => join(JAVAS, name))];
  return homes.find((home) => {
    const version = home === undefined ? 0 : versionOf(home);
    return version >= JAVA_MIN && version <= JAVA_MAX;
  });
}

/** 0 where there is none. */
function versionOf(home: string): number {
  const java = join(home, 'bin', 'java');
  if (!existsSync(java)) return 0;
  const { stderr } = spawnSync(java, ['-version'], { encoding: 'utf8' });
  return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0);
}

function removeOthers(folder: string): void {
  for (const name of readdirSync(dirname(folder))) {
    const isOther = /^spark-[0-9a-f]{16}$/.test(name) && join(dirname(folder), name) !== folder;
    if (isOther) rmSync(join(dirname(folder), name), { recursive: true });
  }
}
