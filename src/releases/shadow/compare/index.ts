import type { AnswerComparer, AnswerPair, Compared, Path } from '../../../gateway/contracts.ts';
import type { Random } from '../../../kernel/random.ts';
import { parsedObject } from '../../../protocols/json-object.ts';
import { readAnswer } from './answers.ts';
import { ask, type Question } from './asking.ts';
import type { Choice, Difference, ReadPair } from './contracts.ts';
import { byEmbedding } from './embedding.ts';
import { exact } from './exact.ts';
import { byJudge } from './judge.ts';
import { decision, numeric } from './numbers.ts';
import { structured } from './structured.ts';

/** Holds the answers of copies against those of callers, as a shadow or a release says. */
export class AnswerComparison implements AnswerComparer {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  compare(path: Path, pair: AnswerPair, done: (compared: Compared) => void): () => void {
    const { by } = pair.settings;
    const read = readPair(pair);
    if ('skipped' in read) {
      done(read);
      return () => undefined;
    }
    if (by === 'embedding' || by === 'judge') return this.#ask(path, pair, read, done);
    const difference = compared(pair, read);
    done(difference === undefined ? { skipped: 'other-kind' } : { difference });
    return () => undefined;
  }

  #ask(path: Path, pair: AnswerPair, read: ReadPair, done: (compared: Compared) => void): () => void {
    const { by, route } = pair.settings;
    const { caller, copy } = read;
    const nothing = () => undefined;
    if (caller.kind !== 'texts' || copy.kind !== 'texts') {
      done({ skipped: 'other-kind' });
      return nothing;
    }
    const [theirs, own] = [wordsOf(caller.choices), wordsOf(copy.choices)];
    if (theirs === own) {
      done({ difference: 0 });
      return nothing;
    }
    let question: Question;
    if (by === 'judge') question = byJudge(route!, askedOf(pair), theirs, own, this.#random);
    else if (theirs.trim() === '' || own.trim() === '') {
      done({ difference: 1 }); // words against none: they have no direction to compare
      return nothing;
    } else question = byEmbedding(route!, theirs, own);
    return ask(path, pair, question, (difference) =>
      done(difference === undefined ? { skipped: `${by}-failed` } : { difference }),
    );
  }
}

/** Both answers, where they can be read and are of one kind. */
function readPair({ x, caller, copy }: AnswerPair): ReadPair | { skipped: string } {
  const theirs = readAnswer(x.call!, caller);
  const own = readAnswer(x.call!, copy);
  return theirs && own ? { caller: theirs, copy: own } : { skipped: 'unreadable' };
}

function compared({ settings }: AnswerPair, pair: ReadPair): Difference {
  if (settings.by === 'exact') return exact(pair, settings.whitespace === 'ignored');
  const isText = pair.caller.kind === 'texts';
  if (settings.by === 'structured') return isText ? structured(pair as ReadPair<'texts'>) : undefined;
  if (isText) return undefined;
  const numbers = pair as ReadPair<'vectors' | 'tensors'>;
  return settings.by === 'decision' ? decision(numbers) : numeric(numbers, settings.tolerance);
}

/** All that an answer says, tool calls as JSON. */
function wordsOf(choices: readonly Choice[]): string {
  return choices
    .map(({ text, toolCalls }) => [text, ...toolCalls.map((call) => JSON.stringify(call))].join('\n'))
    .join('\n\n');
}

/** What was asked: the messages of a chat, or a prompt. */
function askedOf({ x }: AnswerPair): string {
  const body = parsedObject(x.caller.body);
  return JSON.stringify(body?.['messages'] ?? body?.['prompt'] ?? '');
}
