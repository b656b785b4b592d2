import type { PullEvent, Pulled } from '../hosts/models/pull.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Output } from './output.ts';

/** A line on a terminal, or a JSON line, at most so often. */
const TERMINAL_MS = 200;
const JSON_MS = 1000;
/** Where a file of lines is written, progress is worth a line only so often. */
const LINES_MS = 15_000;

export interface PullProgress {
  event(event: PullEvent): void;
  /** Tells how it ended; undefined where no source had the file. */
  end(pulled: Pulled | undefined): void;
}

/**
 * Tells how the pull of one file goes: on a terminal by a line that changes, elsewhere by a line now and then, with
 * `json` by JSON lines on stdout. Which source was taken, and why not those before it, is always told.
 */
export function pullProgress(options: {
  model: string;
  part: string;
  /** The file in words. */
  title: string;
  json: boolean;
  output: Output;
  clock: Clock;
}): PullProgress {
  const { model, part, title, json, output, clock } = options;
  const everyMs = json ? JSON_MS : output.tty ? TERMINAL_MS : LINES_MS;
  let lastMs = clock.mono();
  let refused = false;
  let changing = false;

  const say = (text: string) => {
    if (changing) output.write('\r\u001b[K');
    changing = false;
    output.print(`${title}: ${text}`);
  };
  const progress = (bytes: number, total: number | undefined) => {
    if (clock.mono() - lastMs < everyMs) return;
    lastMs = clock.mono();
    const text = `${title}: ${far(bytes, total)}`;
    if (!output.tty) return output.print(text);
    output.write(`\r\u001b[K${text}`);
    changing = true;
  };

  return {
    event(event) {
      if (json) {
        if (event.type === 'progress') {
          if (clock.mono() - lastMs < everyMs) return;
          lastMs = clock.mono();
        }
        output.json({ ...event, model, part });
      } else if (event.type === 'trying') say(`${refused ? 'trying' : 'fetching from'} ${event.source}`);
      else if (event.type === 'waiting') say('somebody else is fetching it; waiting');
      else if (event.type === 'progress') progress(event.bytes, event.total);
      else {
        refused = true;
        say(`cannot be had from ${event.source}: ${event.reason}`);
      }
    },
    end(pulled) {
      if (json) {
        output.json(pulled ? { type: 'done', model, part, ...pulled } : { type: 'missing', model, part });
        return;
      }
      if (!pulled) return;
      say(`${pulled.already ? 'here' : 'fetched'}, ${far(pulled.bytes, undefined)} from ${pulled.source}`);
      if (pulled.note) say(pulled.note);
    },
  };
}

function far(bytes: number, total: number | undefined): string {
  const done = `${(bytes / 1e6).toFixed(1)} MB`;
  return total === undefined
    ? done
    : `${done} of ${(total / 1e6).toFixed(1)} MB (${Math.floor((100 * bytes) / total)} %)`;
}
