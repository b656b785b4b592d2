import type { ReleaseView } from '../../src/api/releases-schema.ts';
import type { Armature } from '../upstream/armature.ts';
import { eventually } from '../upstream/waiting.ts';

/** Begins to move `chat` to `next`, by the command. */
export async function begin(armature: Armature, ...flags: string[]): Promise<ReleaseView> {
  const { exitCode, stdout, stderr } = await armature.run(
    'release',
    'start',
    'chat',
    '--to',
    'next',
    '--json',
    ...flags,
  );
  if (exitCode !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** The newest. */
async function releaseOf(armature: Armature): Promise<ReleaseView> {
  const answer = await armature.admin('/api/v1/releases?limit=1');
  return JSON.parse(answer.content.toString()).data[0];
}

type Holds = (release: ReleaseView) => boolean;

/** Waits until that holds of the newest; `look` finds it. */
export function releaseIs(
  armature: Armature,
  what: string,
  holds: Holds,
  look: (armature: Armature) => Promise<ReleaseView | undefined> = releaseOf,
): Promise<ReleaseView> {
  return eventually(
    what,
    async () => {
      const release = await look(armature);
      return release && holds(release) ? release : undefined;
    },
    50_000,
  );
}

/** The same, also while control is away. */
export const releaseIsInTheEnd = (armature: Armature, what: string, holds: Holds) =>
  releaseIs(armature, what, holds, (of) => releaseOf(of).catch(() => undefined));
