import type { RetirementPlanView, RetirementView } from '../api/contracts.ts';
import { allOf } from './all-of.ts';
import { askedWrongly, type CommonOptions, defineCommand } from './command.ts';
import { type Output, table } from './output.ts';
import { findRunning, post } from './running.ts';

const ACTIONS = ['undo', 'finish', 'show', 'ls'];

export const command = defineCommand({
  arguments: [
    {
      name: 'NAME',
      summary:
        'A backend, a route or MODEL@NUMBER; kind:NAME where it is not clear. Or undo, finish, show, ls.',
    },
    { name: 'ID', summary: 'With undo, finish and show: which retirement.', optional: true },
  ],
  options: {
    yes: { summary: 'Begins. Without it the plan is shown, and nothing is done.' },
    watch: { value: '10m', summary: 'How long nobody may call it until that counts as proven.' },
    window: { value: '30d', summary: 'How far back callers are looked for.' },
  },
  details:
    '`armature retire undo ID` puts everything back, until `armature retire finish ID` has made the last step. --json prints the plan or the retirement, as /api/v1/retirements has it; ls prints {"retirements": [...]}.',
  async run({ args: [name = '', id], options: { yes, watch, window }, common, output }) {
    if (ACTIONS.includes(name)) {
      await act(name, id, common, output);
      return;
    }
    if (id !== undefined) throw askedWrongly(`'${id}' is one name too many`);
    const asked = { name, ...(window !== undefined && { window }) };
    if (!yes) {
      const plan = await post<RetirementPlanView>(common, '/api/v1/retirements/plan', asked);
      if (common.json) output.json(plan);
      else {
        output.print(planText(plan));
        output.note(
          plan.blockers.length > 0
            ? 'it cannot be begun yet'
            : `nothing was done: armature retire ${name} --yes begins`,
        );
      }
      return;
    }
    const begun = await post<RetirementView>(common, '/api/v1/retirements', {
      ...asked,
      ...(watch !== undefined && { watch }),
    });
    show(begun, common, output);
    if (!common.json)
      output.note(
        `armature retire show ${begun.id} tells how it goes; armature retire undo ${begun.id} takes it back`,
      );
  },
});

async function act(action: string, id: string | undefined, common: CommonOptions, output: Output) {
  if (action === 'ls') {
    const data = await allOf<RetirementView>(await findRunning(common), '/api/v1/retirements');
    if (common.json) output.json({ retirements: data });
    else if (data.length === 0) output.note('Nothing was retired.');
    else
      output.print(
        table(
          ['ID', 'WHAT', 'NAME', 'STATE', 'SINCE'],
          data.map((each) => [each.id, each.subject.kind, each.subject.name, each.state, each.startedAt]),
        ),
      );
    return;
  }
  if (id === undefined) throw askedWrongly(`say which: armature retire ${action} ID`);
  const path = `/api/v1/retirements/${encodeURIComponent(id)}`;
  if (action === 'show') {
    const running = await findRunning(common);
    show(await running.call<RetirementView>(path), common, output);
  } else show(await post<RetirementView>(common, `${path}/${action}`), common, output);
}

function show(retirement: RetirementView, common: CommonOptions, output: Output): void {
  if (common.json) output.json(retirement);
  else output.print(retirementText(retirement));
}

function planText({ subject, callers, looked, references, steps, blockers }: RetirementPlanView): string {
  const called = callers.map(({ tenant, requests, lastAt }) => [`  ${tenant}`, String(requests), lastAt]);
  return [
    `To retire the ${subject.kind} ${subject.name}:`,
    ...steps.map((step, at) => `  ${at + 1}. ${step}`),
    '',
    callers.length === 0
      ? `Nobody called it since ${looked.since}, as far as the ledger goes (${looked.events} events).`
      : `Who called it since ${looked.since}:\n${table(['  TENANT', 'REQUESTS', 'LAST'], called)}`,
    ...(looked.complete ? [] : ['There is more in the ledger than was looked through.']),
    ...(references.length === 0 ? [] : ['', 'What names it:']),
    ...references.map(({ path, why }) => `  ${path}: ${why}`),
    ...(blockers.length === 0 ? [] : ['', 'First:', ...blockers.map((blocker) => `  ${blocker}`)]),
  ].join('\n');
}

function retirementText(retirement: RetirementView): string {
  const { id, subject, state, quietSeconds, watchSeconds, calls, lastCall, exported, finished, stuck } =
    retirement;
  const quiet =
    quietSeconds === undefined ? '' : `, quiet for ${Math.floor(quietSeconds)} of ${watchSeconds} s`;
  return [
    `${id}: the ${subject.kind} ${subject.name} is ${state}${quiet}`,
    ...(exported
      ? [`  ${exported.events} events are in ${exported.folder} (sha256 ${exported.sha256})`]
      : []),
    ...(lastCall
      ? [`  called ${calls} times since it was drained, last by ${lastCall.tenant} at ${lastCall.lastAt}`]
      : []),
    ...(stuck === undefined ? [] : [`  waits: ${stuck}`]),
    ...(state === 'proven' ? [`  nobody calls it: armature retire finish ${id} makes the last step`] : []),
    ...(finished ? [`  ${lastStepText(subject.kind, finished)}`] : []),
  ].join('\n');
}

function lastStepText(kind: RetirementView['subject']['kind'], { keys }: { keys: string[] }): string {
  if (kind === 'version') return 'it is archived: armature registry restore brings it back';
  if (kind === 'backend') return 'its entry can be taken out of the file';
  return keys.length === 0 ? 'no key had to be revoked' : `revoked keys: ${keys.join(', ')}`;
}
