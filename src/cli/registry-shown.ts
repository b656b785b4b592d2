import type { DifferenceView, VersionViewInFull } from '../api/contracts.ts';
import { formatSize } from '../kernel/units.ts';
import { table } from './output.ts';

/** Versions and their differences as a person reads them. */

type ManifestFile = { path: string; sha256: string; bytes: number; format: string; role: string };

export function shownVersion(version: VersionViewInFull): string {
  const { files, ...manifest } = version.manifest as { files: ManifestFile[] } & Record<string, unknown>;
  const lines = [
    `${version.version}, ${version.state}, sealed ${version.sealedAt} by ${version.actor} (${version.event})`,
    `aliases: ${version.aliases.join(', ') || 'none'}`,
    `used by: ${version.users.join(', ') || 'nobody'}`,
    ...Object.entries(manifest).map(([name, value]) => `${name}: ${inShort(value)}`),
  ];
  if (version.missing.length > 0) lines.push(`not told: ${version.missing.join(', ')}`);
  const rows = files.map(({ path, role, format, bytes, sha256 }) => [
    path,
    role,
    format,
    formatSize(bytes),
    sha256,
  ]);
  return [...lines, '', table(['file', 'role', 'format', 'size', 'sha256'], rows)].join('\n');
}

export function shownDifference({ before, after, differences }: DifferenceView): string {
  if (differences.length === 0) return `${before} and ${after} say the same`;
  return [`- ${before}`, `+ ${after}`, ...differences.flatMap(shownMember)].join('\n');
}

function shownMember(difference: DifferenceView['differences'][number]): string[] {
  const lines = [difference.path];
  if ('before' in difference) lines.push(`  - ${inShort(difference.before)}`);
  if ('after' in difference) lines.push(`  + ${inShort(difference.after)}`);
  return lines;
}

const inShort = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
