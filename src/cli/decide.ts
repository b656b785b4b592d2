import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { DecisionView } from '../api/contracts.ts';
import { allOf } from './all-of.ts';
import { type ActionGroup, askedWrongly, defineAction } from './command.ts';
import { table } from './output.ts';
import { findRunning } from './running.ts';

type Evidence = DecisionView['evidence'][number];

/** A file up to so many bytes is kept in the decision where it is JSON; of others only what they hash to. */
const CONTENT_BYTES_MAX = 512 * 1024;

const add = defineAction({
  summary: 'record who chose which engine, hardware and version, for what, and why',
  options: {
    engine: { value: 'ENGINE', summary: 'Such as "vllm 0.11.2".' },
    hardware: { value: 'HARDWARE', summary: 'Such as "2x nvidia-h100".' },
    version: {
      value: 'VERSION',
      summary: 'NAME@NUMBER or NAME@ALIAS of the registry, or a version in words.',
    },
    for: {
      value: 'NAME',
      summary: 'A route, backend or model; route:NAME where several are called so. Again for each.',
      many: true,
    },
    why: { value: 'TEXT', summary: 'The reason, in a sentence or more.' },
    evidence: {
      value: 'ID|FILE|URL',
      summary:
        'A certificate, release, event or decision by its id; a file, such as of `armature bench --json`; an address. Again for each.',
      many: true,
    },
    by: { value: 'WHO', summary: 'Who decided.' },
  },
  async run({ options, common, output }) {
    const { engine, hardware, version, why, by } = options;
    const needed = { engine, hardware, version, why, by };
    const missing = Object.entries(needed).flatMap(([name, value]) => (value ? [] : [`--${name}`]));
    if (options.for.length === 0) missing.push('--for');
    if (missing.length > 0) throw askedWrongly(`${missing.join(', ')} must be said too`);
    const body = {
      ...needed,
      for: options.for,
      evidence: await Promise.all(options.evidence.map(evidenceIn)),
    };
    const running = await findRunning(common);
    const decision = await running.call<DecisionView>('/api/v1/decisions', { method: 'POST', body });
    if (common.json) output.json(decision);
    else output.print(`${decision.id} is recorded, for ${decision.for.join(', ')}`);
  },
});

const ls = defineAction({
  summary: 'list what was decided, oldest first',
  async run({ common, output }) {
    const decisions = await allOf<DecisionView>(await findRunning(common), '/api/v1/decisions');
    if (common.json) output.json({ decisions });
    else if (decisions.length === 0) output.note('Nothing was decided yet: armature decide add');
    else {
      const rows = decisions.map((each) => [
        each.id,
        each.at,
        each.by,
        each.engine,
        each.hardware,
        each.version,
        each.for.join(', '),
      ]);
      output.print(table(['id', 'at', 'by', 'engine', 'hardware', 'version', 'for'], rows));
    }
  },
});

const show = defineAction({
  summary: 'show a decision, its reason and its evidence',
  arguments: [{ name: 'ID', summary: 'dec_..., as `decide ls` tells it.' }],
  async run({ args: [id = ''], common, output }) {
    const running = await findRunning(common);
    const decision = await running.call<DecisionView>(`/api/v1/decisions/${encodeURIComponent(id)}`);
    if (common.json) {
      output.json(decision);
      return;
    }
    output.print(
      `${decision.id}, ${decision.at}, by ${decision.by} (recorded by ${decision.actor}, ${decision.event})`,
    );
    output.print(
      `for ${decision.for.join(', ')}: ${decision.engine} on ${decision.hardware}, ${decision.version}`,
    );
    output.print(decision.why);
    for (const evidence of decision.evidence) output.print(`- ${shownEvidence(evidence)}`);
  },
});

export const command: ActionGroup = { actions: { add, ls, show }, defaultAction: 'ls' };

/** An id of the ledger, an address, or a file that is here. */
async function evidenceIn(text: string): Promise<Evidence> {
  if (/^https?:\/\//.test(text)) return { kind: 'url', url: text };
  const stat = statSync(text, { throwIfNoEntry: false });
  if (stat) {
    // What a device or a pipe gives has no end that could be known.
    if (!stat.isFile()) throw askedWrongly(`--evidence ${text} cannot be read: it is no file`);
    try {
      return await fileIn(text);
    } catch (error) {
      throw askedWrongly(`--evidence ${text} cannot be read: ${(error as Error).message}`);
    }
  }
  if (/^[a-z]+_[0-9a-z]+$/.test(text)) return { kind: 'id', id: text };
  throw askedWrongly(`--evidence ${text} is no id, no address, and no file that is here`);
}

async function fileIn(path: string): Promise<Evidence> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(piece);
    bytes += piece.length;
  }
  const told = { kind: 'file' as const, name: basename(path), sha256: hash.digest('hex'), bytes };
  if (bytes > CONTENT_BYTES_MAX) return told;
  try {
    return { ...told, content: JSON.parse(readFileSync(path, 'utf8')) as unknown };
  } catch {
    return told; // no JSON: its hash stands for it
  }
}

function shownEvidence(evidence: Evidence): string {
  if (evidence.kind === 'id') return evidence.id;
  if (evidence.kind === 'url') return evidence.url;
  return `${evidence.name}, ${evidence.bytes} bytes, sha256 ${evidence.sha256}`;
}
