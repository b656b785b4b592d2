import type { Findings } from './checks.ts';
import type { Settings } from './schema/index.ts';

/** A place in a bucket needs the storage that has the bucket. */
export function checkRegistry({ registry }: Settings, findings: Findings): void {
  if (findings.leftOut.has('registry.s3')) return;
  for (const key of ['store', 'archive'] as const) {
    if (!registry[key].startsWith('s3:') || registry.s3) continue;
    const message = `${registry[key]} lies in a bucket, and registry.s3 does not say where that is`;
    const hint = 'give registry.s3: { endpoint, region, accessKeyId, secretAccessKey }';
    findings.fault('contradiction', ['registry', key], message, { hint });
  }
  if (registry.s3 && !registry.store.startsWith('s3:') && !registry.archive.startsWith('s3:')) {
    const message = 'neither registry.store nor registry.archive lies in a bucket, so that it is not used';
    findings.notices.push({ code: 'looks-wrong', path: ['registry', 's3'], message });
  }
}
