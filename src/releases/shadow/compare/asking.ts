import type { AnswerPair, Path } from '../../../gateway/contracts.ts';

/** What is asked of a route for a comparison, and how its answer is read; undefined where that says nothing. */
export interface Question {
  target: string;
  body: object;
  read(answer: Buffer): number | undefined;
}

/**
 * Asks a route for Armature's own ends, at the lowest priority. Calls back once, with what the answer says, or undefined
 * where there was none in time; not at all once the returned function was called.
 */
export function ask(
  path: Path,
  { x, settings }: AnswerPair,
  question: Question,
  done: (difference: number | undefined) => void,
): () => void {
  let over = false;
  let answer: Buffer | undefined;
  const asked = path.ask(
    {
      target: question.target,
      body: Buffer.from(JSON.stringify(question.body)),
      terms: {
        tenant: x.tenant,
        charged: 'nothing',
        priority: 'batch',
        deadlineAt: path.deps.clock.mono() + settings.budget,
        ladder: false,
        session: undefined,
        onOver: () => {
          if (over) return;
          over = true;
          done(answer && question.read(answer));
        },
      },
    },
    {
      whole: (status, _headers, body) => {
        if (status === 200) answer = body;
      },
      open: () => undefined, // too long to be a verdict
      piece: () => true,
      end: () => undefined,
      broken: () => undefined,
    },
  );
  return () => {
    if (over) return;
    over = true;
    asked.leave();
  };
}
