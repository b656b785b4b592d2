import type { EventDraft } from '../../events/event-maker.ts';
import { type Exchange, type Path, sessionMove } from '../../gateway/contracts.ts';

/** The event that tells that a session's turn was answered by another backend than the one before; undefined where it was not. */
export function moveOf(path: Path, x: Exchange, session: string): EventDraft | undefined {
  const { clock, world } = path.deps;
  const move = x.last && sessionMove(world, x, clock.mono());
  return (
    move && {
      type: 'session-moved',
      subject: `session:${session}`,
      causes: [x.id],
      data: { tenant: x.tenant, route: x.route!.name, ...move },
    }
  );
}
