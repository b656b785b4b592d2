import { parse, tokenize } from '@huggingface/jinja';
import { expressionNames } from '../../config/templates.ts';
import { BoundedInterpreter, type RuntimeValue } from '../interpreter.ts';
import { environmentOf, type TemplateScope, usesOf, type Wanted } from '../templates.ts';

type Program = ReturnType<typeof parse>;

/** How deep lists in lists may go. */
const DEPTH_MAX = 32;

/** A Jinja expression over what a stage can see, parsed once. The configuration's check has found it to be one expression. */
export class Expression {
  /** The names that it reads something of. */
  readonly roots: readonly string[];
  readonly #statement: Program['body'][number];
  readonly #uses: Readonly<Record<string, Wanted>>;

  /** Throws where the text is none. */
  constructor(text: string) {
    const program = parse(tokenize(`{{ ${text} }}`));
    const read = expressionNames(text);
    if ('cause' in read) throw new Error(read.cause);
    this.roots = read.names;
    this.#statement = program.body[0]!;
    this.#uses = usesOf(program);
  }

  /** What it gives, as plain data; undefined where it speaks of what is not there. Throws where it cannot be told. */
  value(scope: TemplateScope): unknown {
    return plain(this.#run(scope), 0);
  }

  /** Whether it holds, as Jinja has it: an empty text or list, 0 and none do not. Throws where it cannot be told. */
  holds(scope: TemplateScope): boolean {
    return this.#run(scope).__bool__().value;
  }

  #run(scope: TemplateScope): RuntimeValue {
    const environment = environmentOf(scope, this.#uses);
    return new BoundedInterpreter(environment).evaluate(this.#statement, environment);
  }
}

function plain({ type, value }: RuntimeValue, depth: number): unknown {
  if (depth > DEPTH_MAX) throw new Error('lists in lists are too deep');
  switch (type) {
    case 'IntegerValue':
    case 'FloatValue':
    case 'StringValue':
    case 'BooleanValue':
    case 'NullValue':
      return value;
    case 'UndefinedValue':
    case 'FunctionValue': // what a list or a text can do, where a member was meant that is not there
      return undefined;
    case 'ArrayValue':
    case 'TupleValue':
      return (value as RuntimeValue[]).map((item) => plain(item, depth + 1));
    case 'ObjectValue':
      return Object.fromEntries(
        [...(value as Map<string, RuntimeValue>)].map(([key, item]) => [key, plain(item, depth + 1)]),
      );
    default:
      throw new Error('it gives no plain value');
  }
}
