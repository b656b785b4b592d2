/**
 * A tokenizer.json changed so that the library of JavaScript cuts texts as the reference does, which is written in Rust:
 * what both call white space, a number or a word is not the same. Everything else is left as it is.
 */

type Step = Record<string, unknown>;

/** Unicode's White_Space, as `\s` has it in the reference. JavaScript's has U+FEFF as well, and not U+0085. */
const SPACE = '\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

/** How GPT-2 cuts text into words; the reference writes it in its own code. */
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

export function exactTokenizer(json: Record<string, unknown>): Record<string, unknown> {
  const { pre_tokenizer: cut, normalizer: form } = json as Record<string, Step | null | undefined>;
  return {
    ...json,
    ...(cut && { pre_tokenizer: exactStep(cut) }),
    ...(form?.type === 'BertNormalizer' && form.handle_chinese_chars !== false
      ? { normalizer: { type: 'Sequence', normalizers: [FAR_HAN, form] } }
      : {}),
  };
}

/** Chinese characters beyond the first plane stand alone as well; the library looks at halves of them. */
const FAR_HAN: Step = {
  type: 'Replace',
  pattern: {
    Regex:
      '[\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b73f}\\u{2b740}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}\\u{2f800}-\\u{2fa1f}]',
  },
  content: ' $& ',
};

function exactStep(step: Step): Step {
  switch (step.type) {
    case 'Sequence':
      return { ...step, pretokenizers: (step.pretokenizers as Step[]).map(exactStep) };
    case 'Digits':
      return split(step.individual_digits ? '\\p{N}' : '\\p{N}+');
    case 'ByteLevel':
      // A space that is put before a text goes before it is cut.
      if (step.use_regex === false || step.add_prefix_space !== false) return step;
      return { type: 'Sequence', pretokenizers: [split(GPT2), { ...step, use_regex: false }] };
    case 'WhitespaceSplit':
      return split('\\s+', 'Removed');
    case 'Split':
      return exactSplit(step);
    default:
      return step;
  }
}

function exactSplit(step: Step): Step {
  const { Regex: expression } = step.pattern as { Regex?: unknown };
  return typeof expression === 'string' ? { ...step, pattern: { Regex: exactClasses(expression) } } : step;
}

function split(expression: string, behavior = 'Isolated'): Step {
  return { type: 'Split', pattern: { Regex: exactClasses(expression) }, behavior, invert: false };
}

/** The same expression with what `\s` and `\S` stand for written out; `\S` within a class stays. */
function exactClasses(expression: string): string {
  let exact = '';
  let inClass = false;
  for (let at = 0; at < expression.length; at++) {
    const character = expression[at]!;
    if (character !== '\\') {
      if (character === '[') inClass = true;
      else if (character === ']') inClass = false;
      exact += character;
      continue;
    }
    const escaped = expression[++at] ?? '';
    if (escaped === 's') exact += inClass ? SPACE : `[${SPACE}]`;
    else if (escaped === 'S' && !inClass) exact += `[^${SPACE}]`;
    else exact += character + escaped;
  }
  return exact;
}
