import type { VersionViewInFull } from '../api/contracts.ts';
import { systemClock } from '../kernel/clock.ts';
import { idMaker } from '../kernel/ids.ts';
import { systemRandom } from '../kernel/random.ts';
import { pause, systemTimers } from '../kernel/timers.ts';
import { formatSize } from '../kernel/units.ts';
import { ADDITION_KEY, ADDITION_KEY_SAYS } from '../releases/registry/reference.ts';
import { askedWrongly, type CommonOptions, defineAction, failed } from './command.ts';
import type { Output } from './output.ts';
import { manifestIn } from './registry-manifest.ts';
import { stepsShown } from './registry-steps.ts';
import { contentOf, filesIn } from './registry-upload.ts';
import { findRunning, isAway } from './running.ts';

/** What is waited before it is asked again whether a version was sealed: a control that died is started anew meanwhile. */
const AGAIN_MS = [500, 1000, 2000, 4000, 8000];

const makeKey = idMaker('add', systemRandom);

export const add = defineAction({
  summary: 'seal a version out of its files and its manifest',
  arguments: [{ name: 'NAME', summary: 'Of a model.' }],
  options: {
    file: {
      value: 'PATH',
      summary: 'A file of it, or a folder with all that is in it; again for each.',
      many: true,
    },
    manifest: { value: 'FILE', summary: 'What it is: YAML or JSON.' },
    once: {
      value: 'KEY',
      summary: 'What this addition is known by: said again with the same KEY, it is not added again.',
      parse: (text: string) => {
        if (ADDITION_KEY.test(text)) return text;
        throw askedWrongly(`--once: ${ADDITION_KEY_SAYS}`);
      },
    },
    allowPickle: { summary: 'Takes pickles as well, and records that you said so.' },
  },
  details: `Files are hashed here, sent in pieces, and looked at by Armature; what is there already is not sent again, and a
transfer that was broken off goes on where it ended. Where the last answer is lost, it is asked for again by a key, so that
one version comes of it; --once KEY is a key of your own. With --json, what happens comes as JSON lines.`,
  async run({ args: [name = ''], options, common, output }) {
    if (options.file.length === 0) throw askedWrongly('--file PATH is needed, once or more');
    if (options.manifest === undefined) throw askedWrongly('--manifest FILE is needed: what the version is');
    const manifest = manifestIn(options.manifest);
    const files = filesIn(options.file);
    const running = await findRunning(common);
    const show = stepsShown(common.json, output, systemClock);
    const kept = [];
    for (const file of files) kept.push(await contentOf(running, file, show));
    const once = options.once ?? makeKey(systemClock.wall());
    const body = { manifest, files: kept, allowPickle: options.allowPickle, once };
    const added = await sealed(common, name, body, output);
    if (common.json) {
      output.json({ type: 'done', ...added });
      return;
    }
    output.print(`${added.version} is sealed: ${kept.length} files, ${formatSize(added.bytes)}`);
    if (added.missing.length > 0) output.note(`Its manifest does not say: ${added.missing.join(', ')}.`);
  },
});

/** Has a version sealed, once, however often its answer is lost. */
async function sealed(
  common: CommonOptions,
  name: string,
  body: { once: string },
  output: Pick<Output, 'note'>,
): Promise<VersionViewInFull> {
  const path = `/api/v1/registry/${encodeURIComponent(name)}/versions`;
  for (let tries = 0; ; tries++) {
    try {
      // Found anew: one that was started again has another token.
      return await (await findRunning(common)).call(path, { method: 'POST', body });
    } catch (error) {
      if (!isAway(error)) throw error;
      const waitMs = AGAIN_MS[tries];
      if (waitMs === undefined)
        throw failed(
          `${error.message}; whether the version was sealed is not known: say the same again with --once ${body.once}`,
        );
      output.note(`${error.message}; it is asked again`);
      await pause(systemTimers, waitMs);
    }
  }
}
