export { Contexts } from './context/index.ts';

import type { Call, Exchange, Path, PipelineRunner } from '../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../kernel/errors.ts';
import type { Snapshot } from '../links/messages.ts';
import { type CallerRequest, readCaller } from './caller-request.ts';
import { ClassVectors } from './flow/class-vectors.ts';
import { answerOipModel } from './oip.ts';
import { type PipelinePlan, Plans } from './plan.ts';
import { PipelineRun } from './run.ts';

/** Members of a chat that only another chat can keep to. */
const FOR_CHATS = ['tools', 'functions', 'response_format', 'audio'];

/** Pipelines: steps over routes, called like a route. */
export class Pipelines implements PipelineRunner {
  readonly #plans = new Plans();
  readonly #classVectors = new ClassVectors();
  #snapshot: Snapshot | undefined;

  run(path: Path, x: Exchange): void {
    const { world } = path.deps;
    const { name, pipeline } = x.route!;
    if (this.#snapshot !== world.snapshot) {
      this.#snapshot = world.snapshot;
      this.#plans.keepOnly((known) => world.pipelines.has(known));
    }
    const plan = this.#plans.of(name, pipeline!);
    if (x.call!.protocol === 'oip' && x.call!.kind !== 'infer') {
      answerOipModel(path, x, plan);
      return;
    }
    const caller = readCaller(x);
    if ('code' in caller) {
      path.refuse(x, caller);
      return;
    }
    const refused = cannotAnswer(x.call!, plan, caller);
    if (refused) path.refuse(x, refused);
    else new PipelineRun(path, x, plan, caller, this.#classVectors).start();
  }
}

/** Why the pipeline's last stage cannot give what this caller asks for. */
function cannotAnswer(
  call: Call,
  { name, last, stages }: PipelinePlan,
  { body }: CallerRequest,
): Failure | undefined {
  if (call.protocol !== 'openai') return undefined;
  const isVectors = last.kind?.name === 'embeddings' && last.settings.classes === undefined;
  if (call.kind === 'embeddings' && !isVectors) {
    return invalidRequest(
      `The pipeline '${name}' answers with a text: call it by /v1/chat/completions.`,
      'model',
    );
  }
  if (call.kind !== 'embeddings' && isVectors) {
    return invalidRequest(
      `The pipeline '${name}' answers with embeddings: call it by /v1/embeddings.`,
      'model',
    );
  }
  const chats = stages.every(({ answers, kind }) => !answers || !kind || kind.name === 'chat');
  if (call.kind !== 'chat' || (chats && (last.kind || last.settings.first))) return undefined;
  const member = FOR_CHATS.find((each) => body[each] != null);
  if (member === undefined) return undefined;
  return invalidRequest(
    `The last stage of the pipeline '${name}' is no chat, and cannot keep to '${member}'.`,
    member,
  );
}
