import { type Entry, open, type ZipFile } from 'yauzl';
import { BrokenFile, type Inspection, TOLD_MAX } from './contracts.ts';
import { bytesOf } from './file-bytes.ts';
import { readPickle } from './pickle.ts';

/** Entries of one archive; each storage is one. */
const ENTRIES_MAX = 1_000_000;
/** A pickle in an archive holds names and shapes, not weights. */
const PICKLE_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Names that TorchScript's own archives look up. Its loader makes tensors and its own classes of them and runs nothing
 * else; an archive that names more was made for another loader (torch/csrc/jit/serialization/unpickler.cpp).
 */
const OF_TORCHSCRIPT =
  /^(__torch__\.|torch\.jit\._pickle\.|torch\._utils\._rebuild_|torch\._tensor\._rebuild|torch\.\w+Storage$|torch\.(device|dtype|Size)$|collections\.OrderedDict$)/;

export function isZipHead(head: Buffer): boolean {
  return head.length >= 4 && head.readUInt32LE() === 0x04034b50;
}

/**
 * A zip archive: TorchScript, which has code and constants beside its data, or a pickle with its storages (`torch.save`).
 * Undefined where it is an archive of something else. Throws a BrokenFile where it cannot be read.
 */
export async function inspectArchive(path: string): Promise<Inspection | undefined> {
  const pickles: { name: string; bytes: Buffer | undefined }[] = [];
  let [code, constants, data] = [false, false, false];
  let entries = 0;
  try {
    await eachEntry(path, async (entry, archive) => {
      if (++entries > ENTRIES_MAX) throw new Error(`it has more than ${ENTRIES_MAX} entries`);
      const { fileName } = entry;
      const inner = fileName.slice(fileName.indexOf('/') + 1);
      code ||= /^code\/.*\.py$/.test(inner);
      constants ||= inner === 'constants.pkl';
      data ||= inner === 'data.pkl';
      if (!/pkl$|pickle$/.test(fileName)) return;
      const small = entry.uncompressedSize <= PICKLE_BYTES_MAX;
      pickles.push({ name: fileName, bytes: small ? await contentOf(archive, entry) : undefined });
    });
  } catch (error) {
    throw new BrokenFile(`it cannot be read as an archive: ${(error as Error).message}`);
  }
  if (pickles.length === 0) return undefined;
  const script = code && constants && data;
  const looked = pickles.flatMap(({ name, bytes }) => namesIn(name, bytes, script));
  if (!script) return { format: 'pickle', danger: dangerOf(looked) };
  const told = { entries, pickles: pickles.length };
  return { format: 'torchscript', told, ...(looked.length > 0 && { danger: dangerOf(looked) }) };
}

/** What a pickle looks up; of TorchScript's own only what does not belong there. */
function namesIn(name: string, bytes: Buffer | undefined, script: boolean): string[] {
  const pickle = bytes && readPickle(bytesOf(bytes));
  if (!pickle) return [`what cannot be read in ${name}`];
  const names = script ? pickle.globals.filter((each) => !OF_TORCHSCRIPT.test(each)) : pickle.globals;
  return pickle.hidden ? [...names, `what only loading ${name} would tell`] : names;
}

export function dangerOf(names: readonly string[]): string {
  if (names.length === 0) return 'whoever loads a pickle runs what it says';
  const some = [...new Set(names)].slice(0, TOLD_MAX / 8).join(', ');
  return `whoever loads a pickle runs what it says; this one looks up ${some}`;
}

function eachEntry(path: string, look: (entry: Entry, archive: ZipFile) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    open(path, { lazyEntries: true }, (fault, archive) => {
      if (fault) return reject(fault);
      archive.on('error', reject);
      archive.on('end', resolve);
      archive.on('entry', (entry: Entry) => {
        look(entry, archive).then(
          () => archive.readEntry(),
          (error) => {
            archive.close();
            reject(error);
          },
        );
      });
      archive.readEntry();
    });
  });
}

function contentOf(archive: ZipFile, entry: Entry): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    archive.openReadStream(entry, (fault, stream) => {
      if (fault) return reject(fault);
      const pieces: Buffer[] = [];
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      stream.on('error', reject);
      stream.on('end', () => resolve(Buffer.concat(pieces)));
    });
  });
}
