import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `npm run build`: src as JavaScript in dist, file by file; Node strips no types below node_modules. */
const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const { status } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', `${root}tsconfig.build.json`], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
