import { askedWrongly, defineCommand, wholeNumber } from './command.ts';
import { findRunning } from './running.ts';

/** What `--follow` begins with, as `tail -f` does. */
const LAST_DEFAULT = 10;
const LAST_MAX = 1000;

export const command = defineCommand({
  options: {
    follow: { summary: `Begins with the last ${LAST_DEFAULT} events and goes on with what comes.` },
    type: { value: 'T', summary: 'Events of this type only, such as request-refused.' },
    after: { value: 'ID', summary: 'Only events stored after this one.' },
    limit: {
      value: 'N',
      summary: 'The newest N events; with --after the first N after it.',
      parse: wholeNumber(1, LAST_MAX),
    },
  },
  details: 'Prints events as JSON lines, oldest first; --json is the same. Without --limit: all of them.',
  async run({ options: { follow, type, after, limit }, common, output }) {
    if (follow && after !== undefined && limit !== undefined) {
      throw askedWrongly('--follow goes on without end: give it --after or --limit, not both');
    }
    const asked = new URLSearchParams();
    if (type !== undefined) asked.set('type', type);
    if (after !== undefined) asked.set('after', after);
    if (limit !== undefined) asked.set(after === undefined ? 'last' : 'limit', String(limit));
    if (follow) {
      asked.set('follow', '1');
      if (after === undefined && limit === undefined) asked.set('last', String(LAST_DEFAULT));
    }
    const running = await findRunning(common);
    for await (const line of running.lines(`/api/v1/events?${asked}`)) output.print(line);
  },
});
