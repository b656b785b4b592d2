import { franc } from 'franc-min';

/** Fewer characters say nothing of a language. */
const CHARS_MIN = 10;

/** The language of a text as ISO 639-3 has it; `und` where it cannot be told. */
export function languageOf(text: string): string {
  return franc(text, { minLength: CHARS_MIN });
}
