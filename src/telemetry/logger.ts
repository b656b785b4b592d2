import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Lines that wait while whatever reads standard error is slow; beyond this they are dropped, never waited for. */
const WAITING_BYTES_MAX = 1024 * 1024;
const STDERR = 2;

/** What must not be written even when a whole object of settings or headers is logged by mistake. */
const SECRET_PATHS = ['authorization', 'auth', 'key', 'token', 'password', 'bearer', 'body'].flatMap(
  (field) => [field, `*.${field}`],
);

/**
 * The log of one process: JSON lines on standard error, or a short readable form where that is a terminal.
 * Log ids and figures; never bodies, prompts or secrets.
 * `part` is the name of the process, such as `control` or `gateway-0`. The level comes from ARMATURE_LOG (default `info`).
 */
export function createLogger(part: string, level: string = process.env.ARMATURE_LOG ?? 'info'): Logger {
  const known = level === 'silent' || Object.values(pino.levels.labels).includes(level);
  const destination = isatty(STDERR)
    ? terminal(process.env.NO_COLOR === undefined)
    : pino.destination({ dest: STDERR, sync: false, maxLength: WAITING_BYTES_MAX });
  return pino(
    {
      level: known ? level : 'info',
      base: { part, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_PATHS, censor: '***' },
    },
    destination,
  );
}

function terminal(colour: boolean): DestinationStream {
  return { write: (line) => void process.stderr.write(readableLine(line, colour)) };
}

const COLOURS: Record<string, string> = {
  warn: '\u001b[33m',
  error: '\u001b[31m',
  fatal: '\u001b[31m',
  debug: '\u001b[2m',
};
const DIM = '\u001b[2m';
const PLAIN = '\u001b[0m';

/** One JSON line as a person reads it: `12:30:01 warn  gateway-0  words  key=value ...` and a newline. */
export function readableLine(line: string, colour: boolean): string {
  const { level, time, part, pid: _pid, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const paint = (code: string, text: string) => (colour && text !== '' ? code + text + PLAIN : text);
  const word = String(level);
  const figures = Object.entries(rest)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const failure =
    typeof err === 'object' && err !== null ? `\n  ${(err as { stack?: string }).stack ?? ''}` : '';
  const head = `${paint(DIM, String(time).slice(11, 19))} ${paint(COLOURS[word] ?? '', word.padEnd(5))} ${String(part)}`;
  return `${head}  ${String(msg ?? '')}${figures && `  ${paint(DIM, figures)}`}${failure}\n`;
}
