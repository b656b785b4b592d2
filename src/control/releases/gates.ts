import { pause, type Timers } from '../../kernel/timers.ts';
import type { Gate, GateAsked, GateVerdict } from '../../releases/contracts.ts';
import type { Logger } from '../../telemetry/logger.ts';

const RETRY_MS = 30_000;

/** Asks one gate after the other, each until it has said something or the signal ends it. Never rejects. */
export async function askGates(
  gates: readonly Gate[],
  asked: GateAsked,
  { timers, log, signal }: { timers: Timers; log: Logger; signal: AbortSignal },
  said: (name: string, verdict: GateVerdict) => void,
): Promise<void> {
  for (const gate of gates) {
    for (let verdict: GateVerdict | undefined; !verdict && !signal.aborted; ) {
      try {
        verdict = await gate.pass(asked, signal);
        if (!signal.aborted) said(gate.name, verdict);
      } catch (error) {
        if (signal.aborted) return;
        log.warn(
          { err: error, release: asked.release, gate: gate.name },
          'a gate cannot be asked; again later',
        );
        await pause(timers, RETRY_MS);
      }
    }
  }
}
