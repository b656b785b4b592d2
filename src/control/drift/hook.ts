import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { DriftSettings } from '../../releases/drift/settings.ts';

export type HookSettings = NonNullable<DriftSettings['hook']>;

/** Tells a change that stays; resolves to the job that it began, where it names one; rejects with why it did not. */
export type RunHook = (hook: HookSettings, body: string, signal: AbortSignal) => Promise<string | undefined>;

/** How long what a program has said may take to be read once it has ended: what it began may hold its output open for days. */
const SAID_WITHIN_MS = 500;
/** So much of what a hook answers is read. */
const ANSWER_CHARS_MAX = 64 * 1024;

/** By a POST, or by a program that gets the body on its standard input; within `hook.timeout`. */
export function hookRunner(timers: Timers): RunHook {
  return async (hook, body, signal) => {
    const late = new AbortController();
    const timer: TimerHandle = timers.set(hook.timeout, () => late.abort());
    const ended = AbortSignal.any([signal, late.signal]);
    try {
      return jobOf(
        await (hook.command ? byCommand(hook.command, body, ended, timers) : byPost(hook, body, ended)),
      );
    } catch (error) {
      if (late.signal.aborted) throw new Error(`it did not answer within ${hook.timeout} ms`);
      throw error;
    } finally {
      timers.clear(timer);
    }
  };
}

async function byPost({ url, secret }: HookSettings, body: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(url!, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(secret !== undefined && signed(secret, body)) },
    body,
    redirect: 'error',
    signal,
  });
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new Error(`it answered ${answer.status}`);
  }
  let text = '';
  for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (text.length > ANSWER_CHARS_MAX) break;
  }
  return text;
}

function byCommand(
  command: readonly string[],
  body: string,
  signal: AbortSignal,
  timers: Timers,
): Promise<string> {
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program!, args, { signal, killSignal: 'SIGKILL', stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    let complaint = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < ANSWER_CHARS_MAX) said += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-500);
    });
    child.once('error', reject);
    const ended = (code: number | null, killedBy: NodeJS.Signals | null) => {
      timers.clear(closing);
      child.stdout.destroy();
      child.stderr.destroy();
      if (code === 0) resolve(said);
      else
        reject(
          new Error(`it ended with ${killedBy ?? code}${complaint === '' ? '' : `: ${complaint.trim()}`}`),
        );
    };
    let closing: TimerHandle;
    child.once('close', ended);
    child.once('exit', (...how) => {
      closing = timers.set(SAID_WITHIN_MS, () => ended(...how));
    });
    // One that does not read what it is told may still do its work.
    child.stdin.on('error', () => undefined);
    child.stdin.end(body);
  });
}

const signed = (secret: string, body: string) => ({
  'x-armature-signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
});

/** `{"job": "..."}`; an answer that names none is as good. */
function jobOf(text: string): string | undefined {
  try {
    const { job } = JSON.parse(text) as { job?: unknown };
    return typeof job === 'string' || typeof job === 'number' ? String(job).slice(0, 500) : undefined;
  } catch {
    return undefined; // it need not be JSON
  }
}
