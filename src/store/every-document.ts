import type { Documents, StoredDocument } from './contracts.ts';

/** Documents that are in memory at one time. */
const PAGE = 500;

/** All documents of one kind, by id. Rejects with a StoreError. */
export async function* everyDocument(documents: Documents, kind: string): AsyncGenerator<StoredDocument> {
  for (let after: string | undefined; ; ) {
    const page = await documents.list(kind, PAGE, after);
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.id;
  }
}
