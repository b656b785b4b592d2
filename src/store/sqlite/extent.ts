import type { Database } from './database.ts';

/** Pages (4 KiB) given back to the disk in one step of retention, once a tenth of the file is free. */
const PAGES_PER_STEP = 256;
const FREE_PAGES_MIN = 1024;

/** Bytes of the file, free pages not counted. */
export function usedBytes(database: Database): number {
  const { pages, free, size } = pageCounts(database);
  return (pages - free) * size;
}

function pageCounts(database: Database): { pages: number; free: number; size: number } {
  const row = database.get(
    `SELECT page_count AS pages, freelist_count AS free, page_size AS size
     FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
  )!;
  return { pages: Number(row.pages), free: Number(row.free), size: Number(row.size) };
}

/** Free pages are used again for new events; only what is free beyond a tenth of the file goes back to the disk. */
export function giveBack(database: Database): void {
  const { pages, free } = pageCounts(database);
  if (free > Math.max(FREE_PAGES_MIN, pages / 10))
    database.all(`PRAGMA incremental_vacuum(${PAGES_PER_STEP})`);
}
