import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { Fault } from './faults.ts';
import type { ConfigIo } from './files.ts';
import { blotLine, isSecretKey, shownKey } from './masking.ts';
import { formatPath, type Path, Places, type Span } from './places.ts';
import { holdsReferences, isReference, resolveReferences, UNRESOLVED } from './references.ts';

/** Nesting beyond this is no configuration. */
const DEPTH_MAX = 64;
/** Values that aliases may stand for, each repetition counted: what keeps an alias bomb from going off. */
const ALIAS_VALUES_MAX = 10_000;

export interface YamlFile {
  file: string;
  /** Maps, lists, texts, numbers, booleans and null, references resolved. Null for an empty file. */
  data: unknown;
  places: Places;
  /** Lines to show, secrets blotted out. */
  lines: string[];
  faults: { fault: Fault; span: Span }[];
  /** It is not known what the file means: its data is incomplete. */
  broken: boolean;
}

/** Reads one YAML 1.2 document (JSON is YAML) with the place of every value. Without `io` references stay as written. */
export function parseYaml(file: string, text: string, io: ConfigIo | undefined): YamlFile {
  return new Reader(file, text, io).read();
}

class Reader {
  readonly #file: string;
  readonly #text: string;
  readonly #io: ConfigIo | undefined;
  readonly #counter = new LineCounter();
  readonly #places = new Places();
  readonly #faults: YamlFile['faults'] = [];
  readonly #anchors = new Map<string, Node>();
  readonly #lines: string[];
  #aliasDepth = 0;
  #aliasValues = 0;
  #broken = false;

  constructor(file: string, text: string, io: ConfigIo | undefined) {
    this.#file = file;
    this.#text = text;
    this.#io = io;
    this.#lines = text.split(/\r?\n/);
  }

  read(): YamlFile {
    let data: unknown = null;
    try {
      data = this.#parse();
    } catch (error) {
      // What overflows the stack of the parser is nested too deep to be a configuration.
      if (!(error instanceof RangeError)) throw error;
      this.#tooDeep([], 0);
    }
    for (const [index, line] of this.#lines.entries()) this.#lines[index] = blotLine(line);
    return {
      file: this.#file,
      data,
      places: this.#places,
      lines: this.#lines,
      faults: this.#faults,
      broken: this.#broken,
    };
  }

  #parse(): unknown {
    const document = parseDocument(this.#text, {
      version: '1.2',
      schema: 'core',
      strict: true,
      stringKeys: true,
      uniqueKeys: true,
      prettyErrors: false,
      lineCounter: this.#counter,
    });
    for (const error of [...document.errors, ...document.warnings]) this.#syntaxFault(error);
    const top = document.contents as ParsedNode | null;
    this.#places.add([], {
      key: undefined,
      value: this.#span(top?.range[0] ?? 0, top?.range[1] ?? 0),
      written: undefined,
    });
    return this.#value(top, [], 0);
  }

  #value(node: Node | null | undefined, path: Path, depth: number): unknown {
    if (!node) return null;
    if (this.#aliasDepth > 0 && ++this.#aliasValues > ALIAS_VALUES_MAX) {
      this.#tooMany(path, node);
      return null;
    }
    if (depth > DEPTH_MAX) {
      this.#tooDeep(path, node.range?.[0] ?? 0);
      return null;
    }
    if (isAlias(node)) return this.#alias(node, path, depth);
    if ('anchor' in node && typeof node.anchor === 'string' && this.#aliasDepth === 0) {
      this.#anchors.set(node.anchor, node);
    }
    if (isMap(node)) return this.#map(node, path, depth);
    if (isSeq(node)) return this.#list(node, path, depth);
    if (isScalar(node)) return this.#scalar(node, path);
    return null;
  }

  #map(node: YAMLMap, path: Path, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue; // told as a syntax fault
      const name = String(key.value ?? '');
      const keySpan = this.#nodeSpan(key);
      if (name === '__proto__') {
        this.#fault('bad-name', keySpan, path, 'no key may be called "__proto__"');
        continue;
      }
      if (Object.hasOwn(map, name)) continue; // told as a duplicate
      if (shownKey(name, path) !== name) this.#blot(key);
      const below = [...path, name];
      const valueNode = value as Node | null;
      // A key without a value has its place at the key.
      const valueSpan = valueNode && !isEmpty(valueNode) ? this.#nodeSpan(this.#target(valueNode)) : keySpan;
      this.#places.add(below, { key: keySpan, value: valueSpan, written: this.#written(valueNode) });
      map[name] = this.#value(valueNode, below, depth + 1);
    }
    return map;
  }

  #list(node: YAMLSeq, path: Path, depth: number): unknown[] {
    return node.items.map((item, index) => {
      const below = [...path, index];
      const itemNode = item as Node;
      this.#places.add(below, {
        key: undefined,
        value: this.#nodeSpan(itemNode),
        written: this.#written(itemNode),
      });
      return this.#value(itemNode, below, depth + 1);
    });
  }

  #scalar(node: Scalar, path: Path): unknown {
    const { value } = node;
    if (path.some(isSecretKey) && !(typeof value === 'string' && isReference(value))) this.#blot(node);
    if (typeof value === 'number' || typeof value === 'boolean') return value;
    if (typeof value !== 'string') return null;
    if (!this.#io || !holdsReferences(value)) return value;
    const resolved = resolveReferences(value, this.#file, this.#io);
    if ('text' in resolved) return resolved.text;
    const { message, hint } = resolved.fault;
    this.#fault('reference', this.#nodeSpan(node), path, message, hint);
    // A text of no meaning: what else is wrong with the value cannot be known.
    return UNRESOLVED;
  }

  #alias(node: Alias, path: Path, depth: number): unknown {
    const target = this.#anchors.get(node.source);
    if (!target) {
      this.#fault(
        'yaml',
        this.#nodeSpan(node),
        path,
        `the alias *${node.source} has no anchor &${node.source} before it`,
      );
      this.#broken = true;
      return null;
    }
    this.#aliasDepth++;
    const value = this.#value(target, path, depth + 1);
    this.#aliasDepth--;
    return value;
  }

  /** Where an aliased value is to be mended: at its anchor. */
  #target(node: Node): Node {
    return isAlias(node) ? (this.#anchors.get(node.source) ?? node) : node;
  }

  #written(node: Node | null): string | undefined {
    const target = node && this.#target(node);
    return isScalar(target) && typeof target.value === 'string' && holdsReferences(target.value)
      ? target.value
      : undefined;
  }

  #span(start: number, end: number): Span {
    const { line, col } = this.#counter.linePos(start);
    const rest = (this.#lines[Math.max(line, 1) - 1]?.length ?? 0) - Math.max(col, 1) + 1;
    return {
      file: this.#file,
      line: Math.max(line, 1),
      column: Math.max(col, 1),
      length: Math.max(1, Math.min(end - start, rest)),
    };
  }

  #nodeSpan(node: Node): Span {
    return this.#span(node.range?.[0] ?? 0, node.range?.[1] ?? 0);
  }

  /** Blots a secret out of the lines it stands on. */
  #blot(node: Scalar): void {
    const [start, end] = node.range ?? [0, 0];
    const from = this.#counter.linePos(start);
    const to = this.#counter.linePos(end);
    for (let line = from.line; line <= to.line; line++) {
      const text = this.#lines[line - 1] ?? '';
      const left = line === from.line ? from.col - 1 : 0;
      const right = line === to.line ? to.col - 1 : text.length;
      this.#lines[line - 1] = text.slice(0, left) + '*'.repeat(Math.max(0, right - left)) + text.slice(right);
    }
  }

  #fault(code: Fault['code'], span: Span, path: Path, message: string, hint?: string): void {
    const { file, line, column } = span;
    const fault = { code, file, line, column, path: formatPath(path), message, ...(hint && { hint }) };
    this.#faults.push({ fault, span });
  }

  #tooMany(path: Path, node: Node): void {
    if (!this.#broken) {
      this.#fault(
        'yaml',
        this.#nodeSpan(node),
        path,
        `aliases stand for more than ${ALIAS_VALUES_MAX} values`,
      );
    }
    this.#broken = true;
  }

  #tooDeep(path: Path, offset: number): void {
    if (!this.#broken) {
      const top = path.slice(0, 3);
      this.#fault('yaml', this.#span(offset, offset), top, `values are nested deeper than ${DEPTH_MAX}`);
    }
    this.#broken = true;
  }

  #syntaxFault(error: YAMLError): void {
    const [start, end] = error.pos;
    const span = this.#span(start, end);
    if (error.code === 'DUPLICATE_KEY') {
      const key = this.#text.slice(start).match(/^["']?([^"'\s:]+)/)?.[1] ?? '';
      const message = `the key ${JSON.stringify(key)} is written twice in one map`;
      this.#fault(
        'duplicate-key',
        this.#span(start, start + key.length),
        [],
        message,
        'keep one of them, or join what is below them',
      );
      return;
    }
    this.#broken = true;
    // The first fault of a line is the cause; what follows on it is mostly its consequence.
    if (this.#faults.some(({ fault }) => fault.code === 'yaml' && fault.line === span.line)) return;
    const { message, hint } = explainSyntax(error.message);
    this.#fault('yaml', span, [], message, hint);
  }
}

const isEmpty = (node: Node): boolean =>
  isScalar(node) && node.value === null && node.range?.[0] === node.range?.[1];

/** The parser's words, and ours: what is wrong, and how it is mended. */
const SYNTAX: readonly (readonly [pattern: RegExp, message: string, hint?: string])[] = [
  [/^Tabs are not allowed/, 'a line is indented with a tab', 'YAML is indented with spaces'],
  [/multiple documents/, 'a second document begins here', 'a file is one document: remove the "---"'],
  [/^With stringKeys/, 'a key is not a plain text', 'a text that starts with { or [ needs quotes'],
  [
    /^Implicit keys need to be on a single line/,
    'a line is no "key: value"',
    'is a ":" or a closing quote missing?',
  ],
  [/^Flow sequence/, 'a list that begins with [ is not closed', 'is a ] missing?'],
  [/^Flow map/, 'a map that begins with { is not closed', 'is a } missing?'],
  [/flow-(map|seq)-end/, 'a bracket is closed that was not opened'],
  [
    /flow-map-start at node end/,
    'a { stands inside a plain text',
    'inside { } and [ ] a text with ${...} needs quotes',
  ],
  [
    /^Block collections are not allowed within flow/,
    'a comma or quotes are missing',
    'inside { } and [ ] a text that holds ":" needs quotes',
  ],
  [
    /^Nested mappings are not allowed/,
    'a second ":" stands on one line',
    'a text that holds ": " needs quotes',
  ],
  [
    /^Unresolved tag|TAG_RESOLVE/,
    'tags such as !name have no meaning here',
    'a text that starts with "!" needs quotes',
  ],
  [/^Missing closing (.)quote/, 'a quote is not closed'],
  [
    /^Plain value cannot start with (?:reserved|directive indicator) character/,
    'a text starts with a character that YAML keeps for itself',
    'put the text into quotes',
  ],
  [
    /^Unexpected scalar at node end/,
    'text follows after the end of a value',
    'a text that holds a quote goes into the other kind of quotes',
  ],
  [
    /^All (mapping items|collection items)/,
    'the indentation fits nothing above it',
    'keys of one map stand in one column',
  ],
  [/indent/, 'the indentation fits nothing above it', 'keys of one map stand in one column'],
  [/call stack/, 'values are nested too deep'],
];

function explainSyntax(message: string): { message: string; hint?: string | undefined } {
  for (const [pattern, told, hint] of SYNTAX) if (pattern.test(message)) return { message: told, hint };
  return { message: `not YAML: ${message.split('\n')[0]}` };
}
