import { type Findings, protocolsOf } from './checks.ts';
import { formatPath, type Path } from './places.ts';
import type { PipelineSettings, Settings } from './schema/index.ts';
import { isPure, membersOf, type StageSort, sortOf } from './stage-order.ts';

type Stages = PipelineSettings['stages'];
type Stage = Stages[string];
type Key = keyof Stage;

/** Sorts of stages that ask a route. */
const ASKING: readonly StageSort[] = ['chat', 'completions', 'embeddings', 'tensors'];

/** Members that say what a stage is asked or made of, and the sorts of stages that take them. */
const TAKEN_BY: Readonly<Partial<Record<Key, readonly StageSort[]>>> = {
  route: ASKING,
  kind: ASKING,
  each: ASKING,
  concurrency: ASKING,
  budget: ASKING,
  input: ['chat', 'completions', 'embeddings'],
  inputs: ['embeddings'],
  messages: ['chat'],
  tensors: ['tensors'],
  output: ['tensors'],
  labels: ['tensors'],
  classes: ['chat', 'completions', 'embeddings'],
};

/** What a stage is made of, where that is one of several. */
const ASKED: Readonly<Record<StageSort, readonly Key[]>> = {
  chat: ['input', 'messages'],
  completions: ['input'],
  embeddings: ['input', 'inputs'],
  tensors: ['tensors'],
  first: [],
  merge: [],
  rank: [],
};

/** Examples of all classes of a stage. */
const EXAMPLES_MAX = 2048;

/** Members of a request that the gateway says itself, or that would make an answer of another shape. */
const SAID = [
  'model',
  'messages',
  'prompt',
  'input',
  'stream',
  'stream_options',
  'n',
  'best_of',
  'encoding_format',
];

/** Whether the members of a stage go together. */
export function checkShape(stage: Stage, path: Path, findings: Findings): void {
  const sort = sortOf(stage);
  // What is missing may be what was written wrongly: that is told already.
  const own = `${formatPath(path)}.`;
  const isSound = ![...findings.leftOut].some((each) => each.startsWith(own));
  const given = (key: Key) => stage[key] !== undefined;
  const fault = (key: Key | undefined, message: string, expected?: string) =>
    findings.fault('contradiction', key === undefined ? path : [...path, key], message, {
      at: 'key',
      ...(expected === undefined ? {} : { expected }),
    });

  const pure = (['first', 'merge', 'rank'] as const).filter(given);
  if (pure.length > 1) fault(undefined, `a stage has one of ${pure.join(', ')}, not several`);
  for (const [key, sorts] of Object.entries(TAKEN_BY) as [Key, readonly StageSort[]][]) {
    if (given(key) && !sorts.includes(sort)) fault(key, wrongFor(key, sort, sorts));
  }
  if (isSound && !isPure(stage) && !given('route')) {
    fault(undefined, 'a stage needs a route', 'route, or one of first, merge and rank');
  }
  const asked = ASKED[sort];
  const said = asked.filter(given);
  if (isSound && asked.length > 0 && said.length !== 1) {
    const names = asked.join(' or ');
    if (said.length > 1) fault(undefined, `a stage has either ${names}, not both`, names);
    else fault(undefined, `a stage${sort === 'chat' ? '' : ` of ${sort}`} needs ${names}`, names);
  }
  if (isSound && stage.tensors && Object.keys(stage.tensors).length === 0) {
    fault('tensors', 'a stage of tensors needs one input or more');
  }
  if (given('concurrency') && !given('each')) fault('concurrency', 'concurrency is for stages with each');
  if (Array.isArray(stage.input) && sort !== 'embeddings') {
    fault('input', 'a list of inputs is for stages of embeddings', 'one template');
  }
  for (const [key, names] of [
    ['first', stage.first],
    ['merge', stage.merge?.of],
  ] as const) {
    const twice = names?.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) fault(key, `stage "${twice}" stands in the list twice`);
  }
  checkClasses(stage, sort, fault);
  checkStream(stage, sort, fault);
  for (const name of Object.keys(stage.parameters)) {
    if (sort === 'tensors' || !SAID.includes(name)) continue;
    const message = `"${name}" cannot be set by parameters: ${name === 'n' || name === 'best_of' ? 'a stage has one answer' : 'the stage says it itself'}`;
    findings.fault('contradiction', [...path, 'parameters', name], message, { at: 'key' });
  }
  if (isPure(stage) && Object.keys(stage.parameters).length > 0) {
    fault('parameters', wrongFor('parameters', sort, ASKING));
  }
  if (isPure(stage) && typeof stage.onFailure === 'object' && 'route' in stage.onFailure) {
    fault('onFailure', `a stage with ${sort} asks no route, so that no other can stand in`);
  }
}

function wrongFor(key: Key, sort: StageSort, sorts: readonly StageSort[]): string {
  if (sort === 'first' || sort === 'merge' || sort === 'rank') {
    return `a stage with ${sort} asks no route, and has no ${key}`;
  }
  return `${key} is for stages of ${sorts.join(' or ')}, and this is one of ${sort}`;
}

type Fault = (key: Key | undefined, message: string, expected?: string) => void;

function checkClasses(stage: Stage, sort: StageSort, fault: Fault): void {
  const { classes, labels } = stage;
  const names = Array.isArray(classes) ? classes : (labels ?? []);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) fault(labels ? 'labels' : 'classes', `"${twice}" stands in the list twice`);
  if (!classes) return;
  if (Array.isArray(classes)) {
    if (sort === 'embeddings') {
      fault('classes', 'for embeddings each class needs examples', '{ CLASS: [EXAMPLE, ...], ... }');
    }
    return;
  }
  if (sort !== 'embeddings') {
    fault('classes', 'examples of classes are for stages of embeddings', 'a list of classes');
  } else if (Object.keys(classes).length < 2) {
    fault('classes', 'one class alone would always be the nearest', 'two classes or more');
  }
  const examples = Object.values(classes).flat().length;
  if (examples > EXAMPLES_MAX) {
    fault(
      'classes',
      `there are ${examples} examples`,
      `${EXAMPLES_MAX} examples or fewer, of all classes together`,
    );
  }
  if (stage.inputs !== undefined || Array.isArray(stage.input)) {
    fault('classes', 'the class is that of one input; for several use each', 'input with one template');
  }
}

function checkStream(stage: Stage, sort: StageSort, fault: Fault): void {
  if (!stage.stream) return;
  if (sort === 'embeddings' || sort === 'tensors' || sort === 'merge' || sort === 'rank') {
    fault('stream', `a stage with ${sort} has no words to pass on as they come`);
  } else if (stage.each !== undefined) {
    fault('stream', 'a stage with each has several answers, which cannot be passed on as they come');
  } else if (stage.classes) {
    fault('stream', 'a stage with classes answers with one of them, once it is known');
  }
}

/** Whether its routes speak what it asks. */
export function checkRoutes(stage: Stage, settings: Settings, path: Path, findings: Findings): void {
  if (isPure(stage)) return;
  const sort = sortOf(stage);
  if (stage.route !== undefined) checkProtocol(stage.route, sort, settings, [...path, 'route'], findings);
  const { onFailure } = stage;
  if (typeof onFailure === 'object' && 'route' in onFailure) {
    checkProtocol(onFailure.route, sort, settings, [...path, 'onFailure', 'route'], findings);
  }
}

function checkProtocol(
  name: string,
  sort: StageSort,
  { routes, backends, models }: Settings,
  path: Path,
  findings: Findings,
): void {
  const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
  if (!route) return; // told already
  const wanted = sort === 'tensors' ? 'oip' : 'openai';
  const targets = route.targets.filter(({ weight }) => weight > 0).map(({ backend }) => backends[backend]);
  if (targets.length === 0 || targets.includes(undefined)) return; // it has a fault of its own
  if (!targets.some((backend) => protocolsOf(backend).includes(wanted))) {
    const apis = { openai: "OpenAI's API", oip: 'the Open Inference Protocol' };
    const other = wanted === 'oip' ? 'openai' : 'oip';
    const message = `a stage of ${sort} asks over ${apis[wanted]}, and the targets of route "${name}" speak ${apis[other]}`;
    const hint =
      wanted === 'oip'
        ? 'leave `tensors` out, or name another route'
        : 'ask with `tensors`, or name another route';
    findings.fault('contradiction', path, message, { hint, found: name });
    return;
  }
  const served = new Set(targets.map((backend) => backend!.model));
  if (sort === 'embeddings' && served.size > 1) {
    const message = `the targets of route "${name}" serve several models (${[...served].join(', ')}): their vectors cannot be compared with one another`;
    findings.notices.push({ code: 'looks-wrong', path, message });
  }
  const tasks = new Set(targets.map((backend) => taskOf(backend, models)));
  if (tasks.size !== 1) return;
  const [task] = tasks;
  if (task === undefined || task === TASKS[sort]) return;
  const message = `a stage of ${sort} cannot be asked of route "${name}": its local model is served as ${task}`;
  findings.fault('contradiction', path, message, { found: name });
}

const TASKS: Readonly<Record<string, string>> = {
  chat: 'chat',
  completions: 'chat',
  embeddings: 'embedding',
  tensors: 'tensors',
};

/** What the model of a local backend is served as; undefined of any other. */
function taskOf(
  backend: Settings['backends'][string] | undefined,
  models: Settings['models'],
): string | undefined {
  const model = backend?.engine === 'local' ? models[backend.model] : undefined;
  if (!model) return undefined;
  return model.task ?? (model.format === 'gguf' ? 'chat' : model.tokenizer ? 'embedding' : 'tensors');
}

/** Whether the stages that it is made of give what it needs of them. No circle may be in them. */
export function checkMadeOf(stage: Stage, stages: Stages, path: Path, findings: Findings): void {
  const needs = (name: string, member: 'text' | 'items' | 'vectors', where: Path, hint: string) => {
    if (!Object.hasOwn(stages, name)) return;
    const has = membersOf(name, stages);
    if (has.has(member)) return;
    const message = `stage "${name}" gives no ${member}: it has ${[...has].join(', ')}`;
    findings.fault('unknown-name', where, message, { found: name, hint });
  };
  const embeddings = 'vectors come of a stage of kind embeddings';
  const listed = 'a list comes of stages with each, inputs, texts, merge or rank';
  for (const [i, name] of (stage.first ?? []).entries()) {
    needs(name, 'text', [...path, 'first', i], 'name stages with a text');
  }
  for (const [i, name] of (stage.merge?.of ?? []).entries()) {
    needs(name, 'items', [...path, 'merge', 'of', i], listed);
  }
  for (const [name, tensor] of Object.entries(stage.tensors ?? {})) {
    if (!('vectors' in tensor)) continue;
    const where = [...path, 'tensors', name, 'vectors'];
    needs(tensor.vectors, 'vectors', where, embeddings);
  }
  const { rank } = stage;
  if (!rank) return;
  needs(rank.query, 'vectors', [...path, 'rank', 'query'], embeddings);
  needs(rank.of, 'vectors', [...path, 'rank', 'of'], embeddings);
  needs(rank.of, 'items', [...path, 'rank', 'of'], listed);
}
