import { readArticles } from '../corpora.ts';

export interface Passage {
  /** The id of its article. */
  topic: string;
  text: string;
}

/** The shortest passage, in words; the next sentence begins another. */
const WORDS_MIN = 60;
/** Every so manieth passage is what callers send; the others are the examples that topics are known by. */
const ASKED_OF = 4;

/** The articles of gsa-articles cut into passages of whole sentences, about 70 words each. */
export function readPassages(data: string): { asked: Passage[]; examples: Passage[] } {
  const asked: Passage[] = [];
  const examples: Passage[] = [];
  for (const { id, text } of readArticles(data)) {
    passagesOf(text).forEach((passage, at) => {
      (at % ASKED_OF === ASKED_OF - 1 ? asked : examples).push({ topic: id, text: passage });
    });
  }
  return { asked, examples };
}

function passagesOf(text: string): string[] {
  const passages: string[] = [];
  let open = '';
  for (const sentence of sentencesOf(text)) {
    open = open === '' ? sentence : `${open}\n${sentence}`;
    if (open.split(/\s+/).length < WORDS_MIN) continue;
    passages.push(open);
    open = '';
  }
  return passages;
}

/** Sentences, headings and points of lists, white space made even. */
export function sentencesOf(text: string): string[] {
  return text
    .split(/\n+|(?<=[.!?])\s+(?=[A-Z"“])/)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence !== '');
}
