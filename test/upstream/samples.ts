/** One line of Prometheus text. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export function parseMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) return [];
    const [, name = '', inner = '', value = ''] = match;
    return [{ name, labels: parseLabels(inner), value: Number(value.replace('Inf', 'Infinity')) }];
  });
}

function parseLabels(text: string): Record<string, string> {
  const pairs = text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g);
  return Object.fromEntries(
    [...pairs].map(([, name = '', value = '']) => [
      name,
      value.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char)),
    ]),
  );
}
