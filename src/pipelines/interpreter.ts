import { Interpreter } from '@huggingface/jinja';

/** What the interpreter gives, of any type. */
export interface RuntimeValue {
  type: string;
  value: unknown;
  __bool__(): { value: boolean };
}

/** The package's types do not reach its class. */
const Jinja = Interpreter as unknown as new (
  environment: unknown,
) => {
  evaluate(statement: unknown, environment: unknown): RuntimeValue;
  run(program: unknown): RuntimeValue;
};

/**
 * Parts of a template, or of an expression, that are evaluated in all, each as often as its loop goes round, and the rounds
 * themselves: a quarter of a second or so.
 */
const STEPS_MAX = 200_000;
/** Characters of what comes of it. */
const CHARACTERS_MAX = 64 * 1024 * 1024;

/**
 * Jinja, as far as it goes in a bounded time: a template may loop over lists that callers send, and the worker does nothing else
 * meanwhile. Throws beyond.
 */
export class BoundedInterpreter extends Jinja {
  #steps = 0;
  /** What the loop that begins goes over. */
  #list: unknown;

  override evaluate(statement: unknown, environment: unknown): RuntimeValue {
    if (++this.#steps > STEPS_MAX) {
      throw new Error(`its loops are too long: it takes more than ${STEPS_MAX} steps`);
    }
    const list = listOf(statement);
    if (list !== undefined) this.#list = list;
    const result = super.evaluate(statement, environment);
    if (statement === this.#list && Array.isArray(result.value)) this.#steps += result.value.length;
    if (typeof result.value === 'string' && result.value.length > CHARACTERS_MAX) {
      throw new Error(`it gives more than ${CHARACTERS_MAX} characters`);
    }
    return result;
  }
}

/** The expression whose list a loop goes over; undefined for anything else. */
function listOf(statement: unknown): unknown {
  const { type, iterable } = (statement ?? {}) as {
    type?: string;
    iterable?: { type: string; lhs?: unknown };
  };
  if (type !== 'For') return undefined;
  return iterable?.type === 'SelectExpression' ? iterable.lhs : iterable;
}
