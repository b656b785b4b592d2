import { createHash } from 'node:crypto';
import { mkdir, open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LedgerEvent } from '../../events/contracts.ts';
import { isCall } from '../../releases/retirement/calls.ts';
import type { RetirementDocument, Subject } from '../../releases/retirement/contracts.ts';
import type { Ledger } from '../../store/contracts.ts';
import { eventsAfter } from './scan.ts';

/** Characters that are gathered before they are written. */
const PIECE_CHARS = 1024 * 1024;

/**
 * Writes what the ledger has of it as JSON lines, and what the configuration says of it, into a folder of its own; done again it
 * writes the same. Rejects where the folder cannot be written or the store cannot be read.
 */
export async function exportRecords(
  ledger: Ledger,
  subject: Subject,
  folder: string,
  configuration: unknown,
): Promise<NonNullable<RetirementDocument['exported']>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, 'configuration.json'), `${JSON.stringify(configuration, null, 2)}\n`, {
    mode: 0o600,
  });
  const path = join(folder, 'records.jsonl');
  const file = await open(`${path}.part`, 'w', 0o600);
  const sum = createHash('sha256');
  let [events, bytes, lines] = [0, 0, ''];
  const write = async () => {
    const piece = Buffer.from(lines);
    lines = '';
    bytes += piece.length;
    sum.update(piece);
    await file.write(piece);
  };
  try {
    for await (const { event } of eventsAfter(ledger, 0)) {
      if (!isAbout(event, subject)) continue;
      events++;
      lines += `${JSON.stringify(event)}\n`;
      if (lines.length >= PIECE_CHARS) await write();
    }
    await write();
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.part`, path);
  return { folder, events, bytes, sha256: sum.digest('hex') };
}

function isAbout(event: LedgerEvent, subject: Subject): boolean {
  const { kind, name } = subject;
  if (event.subject === `${kind}:${name}` || event.data[kind] === name || isCall(event, subject)) return true;
  return kind === 'backend' && event.subject.startsWith(`endpoint:${name}|`);
}
