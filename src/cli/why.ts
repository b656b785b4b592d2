import type { RequestRecord } from '../events/contracts.ts';
import { type Replayed, replay } from '../events/replay.ts';
import type { Why } from '../events/why.ts';
import { replayable } from '../policies/register.ts';
import { defineCommand } from './command.ts';
import { findRunning } from './running.ts';
import { drawWhy } from './why-tree.ts';

export const command = defineCommand({
  arguments: [
    {
      name: 'ID',
      summary:
        "Of a request (x-armature-id, or the caller's x-request-id), an event or a key; or what it is about, such as snapshot:3, worker:0, BACKEND|ADDRESS.",
    },
  ],
  options: {
    replay: {
      summary:
        'Takes the recorded decisions of a request again, and compares them bit by bit. Exit 1 where one differs.',
    },
  },
  async run({ args: [id = ''], options, common, output }) {
    const running = await findRunning(common);
    if (!options.replay) {
      const why = await running.call<Why>(`/api/v1/why/${encodeURIComponent(id)}`);
      if (common.json) output.json(why);
      else output.print(drawWhy(why, output.tty && process.env.NO_COLOR === undefined));
      return 0;
    }
    const record = await running.call<RequestRecord>(`/api/v1/requests/${encodeURIComponent(id)}`);
    const replayed = replay(record, replayable);
    const same = replayed.every((decision) => decision.same);
    if (common.json) output.json({ id: record.id, same, decisions: replayed });
    else if (replayed.length === 0) output.print(`${record.id}: no policy had to choose`);
    else for (const decision of replayed) output.print(lineOf(decision));
    return same ? 0 : 1;
  },
});

function lineOf({ policy, same, recorded, again, problem }: Replayed): string {
  if (same) return `same       ${policy}  ${recorded.code}  ${JSON.stringify(recorded.figures)}`;
  const now = again ? `\n  now:       ${again.code}  ${JSON.stringify(again.figures)}` : '';
  const because = problem === undefined ? '' : `\n  ${problem}`;
  return `DIFFERENT  ${policy}\n  recorded:  ${recorded.code}  ${JSON.stringify(recorded.figures)}${now}${because}`;
}
