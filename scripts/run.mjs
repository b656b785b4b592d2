// `node scripts/run.mjs FILE [ARG]...`: runs a script of this repository on the right Node. Itself on any from 20.
import { spawn } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { installPackages, nodePath, root } from './packages.mjs';

installPackages();
const node = nodePath();
const [file, ...args] = process.argv.slice(2);
const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
const child = spawn(node, [join(root, file), ...args], { stdio: 'inherit', env });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
