import { crc32 } from 'node:zlib';
import { text, u32, u64 } from './gguf-bytes.ts';

/** Small files of each format that versions of models are made of, put together byte by byte as their formats say. */

/** A tensor of `fp32` numbers called `w`, or what is said instead. */
export function safetensors(
  tensors: Record<string, unknown> = { w: { dtype: 'F32', shape: [2, 2], data_offsets: [0, 16] } },
  data = Buffer.alloc(16),
): Buffer {
  const header = Buffer.from(JSON.stringify(tensors));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, data]);
}

/** Values are texts and whole numbers; one tensor of 32 numbers, q8_0, is its data, or what is said instead. */
export function gguf(
  values: Record<string, string | number>,
  dataBytes = 34,
  { type = 8, elements = 32 } = {},
): Buffer {
  const pairs = Object.entries(values).map(([key, value]) =>
    Buffer.concat([
      text(key),
      typeof value === 'string' ? Buffer.concat([u32(8), text(value)]) : Buffer.concat([u32(4), u32(value)]),
    ]),
  );
  const tensor = Buffer.concat([text('w'), u32(1), u64(elements), u32(type), u64(0)]);
  const head = Buffer.concat([Buffer.from('GGUF'), u32(3), u64(1), u64(pairs.length), ...pairs, tensor]);
  const padding = Buffer.alloc((32 - (head.length % 32)) % 32);
  return Buffer.concat([head, padding, Buffer.alloc(dataBytes)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) | 0x80);
  }
}

/** A field of a protobuf message: a number, or bytes. */
export function field(number: number, value: number | Buffer | string): Buffer {
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

/** An ONNX model with an initializer of 6 numbers of a type (1 fp32, 3 int8), in the file or beside it. */
export function onnx({ type = 1, external = '' } = {}): Buffer {
  const place = Buffer.concat([field(1, 'location'), field(2, external)]);
  const tensor = Buffer.concat([
    field(1, Buffer.from([2, 3])),
    field(2, type),
    field(8, 'w'),
    ...(external === '' ? [field(9, Buffer.alloc(24))] : [field(13, place), field(14, 1)]),
  ]);
  const graph = Buffer.concat([
    field(5, tensor),
    field(11, field(1, 'pixels')),
    field(12, field(1, 'scores')),
  ]);
  return Buffer.concat([
    field(1, 8),
    field(2, 'a producer'),
    field(7, graph),
    field(8, Buffer.concat([field(1, ''), field(2, 17)])),
  ]);
}

/** A SavedModel whose graph has one node that does this. */
export function savedModel(op = 'Const'): Buffer {
  const graph = field(1, Buffer.concat([field(1, 'a node'), field(2, op)]));
  return Buffer.concat([field(1, 1), field(2, Buffer.concat([field(1, Buffer.alloc(3)), field(2, graph)]))]);
}

/** A zip archive whose entries are stored as they are. */
export function zip(entries: Record<string, Buffer | string>): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const [name, content] of Object.entries(entries)) {
    const bytes = Buffer.from(content);
    const path = Buffer.from(name);
    const about = Buffer.alloc(26);
    about.writeUInt16LE(20, 0);
    about.writeUInt32LE(crc32(bytes), 10);
    about.writeUInt32LE(bytes.length, 14);
    about.writeUInt32LE(bytes.length, 18);
    about.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), about, path, bytes]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    central.push(
      Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), Buffer.from([20, 0]), about, tail, path]),
    );
    locals.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(central.length, 4);
  end.writeUInt16LE(central.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...locals, directory, Buffer.from('PK\x05\x06', 'latin1'), end]);
}

/** A pickle of protocol 2 that looks these names up, each a module and what is in it. */
export function pickle(...names: [module: string, name: string][]): Buffer {
  const looked = names.map(([module, name]) => Buffer.from(`c${module}\n${name}\n0`));
  return Buffer.concat([Buffer.from([0x80, 2]), ...looked, Buffer.from('N.')]);
}

export const torchScript = (data = pickle(['__torch__', 'Net'])) =>
  zip({
    'net/data.pkl': data,
    'net/constants.pkl': pickle(['torch._utils', '_rebuild_tensor_v2'], ['torch', 'FloatStorage']),
    'net/code/__torch__.py': 'class Net(Module):\n  pass\n',
    'net/data/0': Buffer.alloc(16),
  });

export const torchSave = () =>
  zip({ 'archive/data.pkl': pickle(['os', 'system']), 'archive/data/0': '....' });
