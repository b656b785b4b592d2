import { enableCompileCache } from 'node:module';

/**
 * Where every process of Armature starts. The parts of a running one are processes of their own, which the
 * supervisor starts by name and which load nothing of the command line; everything else is what a person typed.
 */
enableCompileCache();
const [name, ...args] = process.argv.slice(2);
switch (name) {
  case 'control':
    await (await import('./control/main.ts')).run(args);
    break;
  case 'gateway':
    await (await import('./gateway/main.ts')).run(args);
    break;
  case 'host':
    await (await import('./hosts/main.ts')).run(args);
    break;
  case 'load':
    await (await import('./load/main.ts')).run();
    break;
  default: {
    const [{ main }, { leaveWhenNobodyReads }] = await Promise.all([
      import('./cli/program.ts'),
      import('./cli/output.ts'),
    ]);
    leaveWhenNobodyReads();
    process.exitCode = await main(process.argv.slice(2));
  }
}
