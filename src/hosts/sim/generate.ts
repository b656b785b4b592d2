import type { Accelerator, Job } from '../../simulation/accelerator/accelerator.ts';
import { WAITING_MAX } from '../../simulation/accelerator/accelerator.ts';
import { HostFault, tooBusy } from '../fault.ts';

/** The simulated hardware was told to fail this request. */
function simulatedFailure(): HostFault {
  return new HostFault(500, 'the simulated accelerator failed, as its profile asks', {
    code: 'simulated_fault',
  });
}

/** The answer is to be broken off in the middle, as the profile asks. */
export class Cut extends Error {}

/**
 * Runs a job to its end, calling `onToken` for each token. Rejects with a HostFault where it fails, with Cut where it is
 * broken off; never settles when the job stalls or the caller leaves, which gives its place back.
 */
export function run(
  accelerator: Accelerator,
  job: Job,
  gone: AbortSignal,
  onToken: (index: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (gone.aborted) return;
    const running = accelerator.submit(job, {
      onToken,
      onEnd: resolve,
      onFault: (fault) => reject(fault === 'error' ? simulatedFailure() : new Cut()),
    });
    if (!running) {
      reject(tooBusy(WAITING_MAX));
      return;
    }
    gone.addEventListener('abort', () => running.cancel(), { once: true });
  });
}
