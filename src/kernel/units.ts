/** Reads and writes the units of the configuration file. Every parser gives undefined for what it cannot read. */

const DURATION_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const SIZE_BYTES: Record<string, number> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};
const RATE_SECONDS: Record<string, number> = { s: 1, min: 60, h: 3600, d: 86_400 };

/** `450ms`, `2s`, `1.5m`, `24h`, `30d` -> milliseconds. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * DURATION_MS[match[2]!]! : undefined;
}

/** `8MiB`, `512KiB`, `100B` -> whole bytes. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(B|KB|MB|GB|KiB|MiB|GiB|TiB)$/.exec(text);
  return match ? Math.floor(Number(match[1]) * SIZE_BYTES[match[2]!]!) : undefined;
}

/** How much per how long: `200/s`, `2000000/min`. */
export interface Rate {
  amount: number;
  perSeconds: number;
}

export function parseRate(text: string): Rate | undefined {
  const match = /^(\d+(?:\.\d+)?)\/(s|min|h|d)$/.exec(text);
  return match ? { amount: Number(match[1]), perSeconds: RATE_SECONDS[match[2]!]! } : undefined;
}

/** Milliseconds as a person writes them: `450ms`, `2s`, `1.5h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${trim(ms / 1000)}s`;
  if (ms < 3_600_000) return `${trim(ms / 60_000)}m`;
  if (ms < 86_400_000) return `${trim(ms / 3_600_000)}h`;
  return `${trim(ms / 86_400_000)}d`;
}

/** Bytes as a person writes them: `8MiB`. */
export function formatSize(bytes: number): string {
  for (const unit of ['TiB', 'GiB', 'MiB', 'KiB'] as const) {
    if (bytes >= SIZE_BYTES[unit]!) return `${trim(bytes / SIZE_BYTES[unit]!)}${unit}`;
  }
  return `${bytes}B`;
}

function trim(value: number): string {
  return String(Number(value.toFixed(2)));
}
