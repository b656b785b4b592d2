import { pause, type Timers } from '../../kernel/timers.ts';
import type { GoldenAnswer } from '../../releases/parity/answers.ts';
import type { Ask } from '../../releases/parity/passes.ts';
import type { Asker, Place } from './asker.ts';
import type { ParityControl } from './contracts.ts';
import type { Room } from './room.ts';

/** How long an idle host may take to serve, and a full endpoint to have room, in milliseconds. */
const SERVE_MS_MAX = 120_000;
const ROOM_MS_MAX = 300_000;
const LOOK_MS = 250;

export interface Reaching {
  control: ParityControl;
  timers: Timers;
  asker: Asker;
  room: Room;
}

/** The endpoints of a backend as they are now; empty where its host is idle or starts. */
export function placesOf(backend: string, { effective, snapshots }: ParityControl): Place[] {
  const settings = effective.settings.backends[backend];
  const endpoints = snapshots.current.endpoints[backend] ?? [];
  return settings ? endpoints.map((endpoint) => ({ backend, settings, endpoint })) : [];
}

/** Asks a backend, its endpoints in turn; wakes an idle host for it. `seen` is told every answer. */
export function asking(
  backend: string,
  cause: string,
  reaching: Reaching,
  seen: (answer: GoldenAnswer) => void,
): Ask {
  let turn = 0;
  return async (prompt, signal) => {
    const places = await served(backend, cause, reaching, signal);
    const place = places[turn++ % places.length]!;
    await roomAt(place, reaching, signal);
    const answer = await reaching.asker.ask(place, prompt, signal);
    seen(answer);
    return answer;
  };
}

/** Waits until a backend has an endpoint. Rejects where it has none in time. */
async function served(
  backend: string,
  cause: string,
  { control, timers }: Reaching,
  signal: AbortSignal,
): Promise<Place[]> {
  for (let waitedMs = 0; waitedMs < SERVE_MS_MAX && !signal.aborted; waitedMs += LOOK_MS) {
    if (!Object.hasOwn(control.effective.settings.backends, backend))
      throw new Error(`there is no backend '${backend}' any more`);
    const places = placesOf(backend, control);
    if (places.length > 0) return places;
    if (waitedMs === 0) control.idle.wake(backend, cause);
    await pause(timers, LOOK_MS);
  }
  throw new Error(`${backend} has no endpoint that serves`);
}

async function roomAt(
  { backend, endpoint }: Place,
  { room, control, timers }: Reaching,
  signal: AbortSignal,
) {
  for (let waitedMs = 0; waitedMs < ROOM_MS_MAX && !signal.aborted; waitedMs += LOOK_MS) {
    if (await room.at(backend, endpoint, control)) return;
    await pause(timers, LOOK_MS);
  }
  throw new Error(`${endpoint} has no room`);
}
