import type { AliasViewInFull } from '../api/contracts.ts';
import type { Clock } from '../kernel/clock.ts';
import { formatSize } from '../kernel/units.ts';
import { askedWrongly, failed } from './command.ts';
import type { Output } from './output.ts';
import type { Running } from './running.ts';

/** How versions are named on the command line, and how what takes a while is followed. */

export type Reference = { model: string; number: number } | { model: string; alias: string };

export function referenceIn(text: string): Reference {
  const [, model, number, alias] = /^([^@]+)@(?:([1-9]\d*)|([A-Za-z].*))$/.exec(text) ?? [];
  if (model === undefined)
    throw askedWrongly(`expected NAME@NUMBER or NAME@ALIAS, such as fraud@3, got '${text}'`);
  return number === undefined ? { model, alias: alias! } : { model, number: Number(number) };
}

/** Where the API has a version; what an alias leads to is asked each time. */
export async function atVersion(running: Running, text: string): Promise<string> {
  const reference = referenceIn(text);
  const model = `/api/v1/registry/${encodeURIComponent(reference.model)}`;
  if ('number' in reference) return `${model}/versions/${reference.number}`;
  const path = `${model}/aliases/${encodeURIComponent(reference.alias)}?limit=1`;
  const { number } = await running.call<AliasViewInFull>(path);
  return `${model}/versions/${number}`;
}

export async function read<Answer>(running: Running, text: string, more: string): Promise<Answer> {
  return running.call<Answer>((await atVersion(running, text)) + more);
}

export interface ShownStep {
  what: string;
  bytes: number;
  total: number;
}

/** A line on a terminal that changes, or a line now and then. */
const TERMINAL_MS = 200;
const LINES_MS = 5000;

export type ShowStep = (step: ShownStep) => void;

export function stepsShown(json: boolean, output: Output, clock: Clock): ShowStep {
  const everyMs = output.tty && !json ? TERMINAL_MS : LINES_MS;
  let lastMs = clock.mono();
  return ({ what, bytes, total }) => {
    const over = bytes >= total;
    if (clock.mono() - lastMs < everyMs && !(over && output.tty && !json)) return;
    lastMs = clock.mono();
    const share = total === 0 ? 100 : Math.floor((100 * bytes) / total);
    if (json) output.json({ type: 'progress', what, bytes, total });
    else if (output.tty)
      output.write(
        `\r\u001b[K${over ? '' : `${what}: ${formatSize(bytes)} of ${formatSize(total)} (${share} %)`}`,
      );
    else output.note(`${what}: ${formatSize(bytes)} of ${formatSize(total)} (${share} %)`);
  };
}

/** Shows steps as they come, and gives the last one. Throws what it failed for. */
export async function followSteps(
  lines: AsyncIterable<string>,
  show: ShowStep,
  title = '',
): Promise<Record<string, unknown>> {
  for await (const line of lines) {
    const step = JSON.parse(line) as Record<string, unknown> & { type: string };
    if (step.type === 'done') return step;
    if (step.type === 'failed') throw failed(`${title === '' ? '' : `${title}: `}${step.message}`);
    const { what, bytes, total } = step as unknown as ShownStep;
    show({ what: title === '' ? what : `${title}, ${what}`, bytes, total });
  }
  throw failed('Armature broke off before it was done; what was moved so far is kept: try again');
}
