/** One line of Prometheus' text format. */
export interface Sample {
  labels: ReadonlyMap<string, string>;
  value: number;
}

const NO_LABELS: ReadonlyMap<string, string> = new Map();
const LABEL = /[{,][ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\\n]|\\.)*)"[ \t]*/y;
const LABELS_END = /(?:[{,][ \t]*)?\}/y;
/** The value, then perhaps a moment and an exemplar; nothing else may stand on the line. */
const VALUE =
  /[ \t]*(NaN|[+-]?Inf|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:[ \t]+-?[\d.eE+-]+)?[ \t]*(?:#.*)?\r?(?=\n|$)/iy;

/**
 * The samples of one metric in a page of metrics, in Prometheus' text format 0.0.4 or OpenMetrics'. Pages run to megabytes
 * of histograms, and a few gauges are wanted of them: so nothing is read but the lines of this name. A line that cannot
 * be read is left out, and so is `NaN`: what is not known is missing, and not zero.
 */
export function samplesOf(page: string, name: string): Sample[] {
  const samples: Sample[] = [];
  for (let at = page.indexOf(name); at >= 0; at = page.indexOf(name, at + name.length)) {
    if (at > 0 && page[at - 1] !== '\n') continue;
    const sample = readSample(page, at + name.length);
    if (sample) samples.push(sample);
  }
  return samples;
}

function readSample(page: string, at: number): Sample | undefined {
  let from = at;
  let labels = NO_LABELS;
  if (page[from] === '{') {
    const read = readLabels(page, from);
    if (!read) return undefined;
    ({ labels, end: from } = read);
  } else if (page[from] !== ' ' && page[from] !== '\t') return undefined; // a longer name
  VALUE.lastIndex = from;
  const text = VALUE.exec(page)?.[1];
  if (text === undefined) return undefined;
  const value = Number(text.replace(/inf/i, 'Infinity'));
  return Number.isNaN(value) ? undefined : { labels, value };
}

function readLabels(page: string, at: number): { labels: Map<string, string>; end: number } | undefined {
  const labels = new Map<string, string>();
  let from = at;
  for (;;) {
    LABEL.lastIndex = from;
    const match = LABEL.exec(page);
    if (!match) break;
    labels.set(match[1]!, unescaped(match[2]!));
    from = LABEL.lastIndex;
  }
  LABELS_END.lastIndex = from;
  return LABELS_END.test(page) ? { labels, end: LABELS_END.lastIndex } : undefined;
}

function unescaped(text: string): string {
  return text.includes('\\')
    ? text.replace(/\\(.)/g, (whole, escaped: string) =>
        escaped === 'n' ? '\n' : escaped === '"' || escaped === '\\' ? escaped : whole,
      )
    : text;
}
