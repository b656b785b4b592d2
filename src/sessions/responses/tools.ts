import { isObject, type Json } from '../../protocols/json-object.ts';
import { given, optionalFlag, optionalObject, optionalText, Refused, text } from '../refused.ts';

/** Tools, as a chat has them and as the response tells them back. */
export interface Tools {
  /** Members of the chat. */
  chat: Json;
  echoed: Json[];
  choiceEchoed: unknown;
  parallel: boolean | undefined;
}

const MODES = ['none', 'auto', 'required'];
const TOOLS_MAX = 1024;

/** Functions are the caller's own; what OpenAI hosts itself no engine behind a route can do. Throws Refused. */
export function readTools(body: Json): Tools {
  const tools = given(body, 'tools') ?? [];
  if (!Array.isArray(tools) || tools.length > TOOLS_MAX)
    throw new Refused(`Expected 'tools' to be a list of at most ${TOOLS_MAX} tools.`, 'tools');
  const functions = tools.map(readTool);
  const choice = given(body, 'tool_choice');
  const parallel = optionalFlag(body, 'parallel_tool_calls');
  const { mode, allowed } = readChoice(choice, functions);
  const sent = allowed === undefined ? functions : functions.filter(({ name }) => allowed.includes(name));
  const chat: Json = {};
  if (sent.length > 0) {
    chat['tools'] = sent.map(({ chat: tool }) => tool);
    if (mode !== undefined) chat['tool_choice'] = mode;
    if (parallel !== undefined) chat['parallel_tool_calls'] = parallel;
  }
  return {
    chat,
    echoed: functions.map(({ echoed }) => echoed),
    choiceEchoed: choice ?? 'auto',
    parallel,
  };
}

interface FunctionTool {
  name: string;
  chat: Json;
  echoed: Json;
}

function readTool(tool: unknown, index: number): FunctionTool {
  const at = `tools[${index}]`;
  if (!isObject(tool)) throw new Refused(`Expected '${at}' to be an object.`, at);
  const { type } = tool;
  if (type !== 'function') {
    throw new Refused(
      `Tools of type '${String(type).slice(0, 100)}' are not hosted here: only functions of your own can be called.`,
      `${at}.type`,
    );
  }
  if (isObject(given(tool, 'function')))
    throw new Refused(`'${at}.function': here name and parameters stand in the tool itself.`, at);
  const name = text(tool, 'name', `${at}.name`);
  if (name === '') throw new Refused(`'${at}.name' is empty.`, `${at}.name`);
  const description = optionalText(tool, 'description', `${at}.description`);
  const parameters = optionalObject(tool, 'parameters', `${at}.parameters`);
  const strict = optionalFlag(tool, 'strict', `${at}.strict`);
  const described = {
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
    ...(strict === undefined ? {} : { strict }),
  };
  return {
    name,
    chat: { type: 'function', function: described },
    echoed: {
      type: 'function',
      name,
      description: description ?? null,
      parameters: parameters ?? null,
      strict: strict ?? null,
    },
  };
}

/** How the chat is told; `allowed`: only these tools are sent. */
function readChoice(
  choice: unknown,
  functions: readonly FunctionTool[],
): { mode: unknown; allowed?: string[] } {
  const at = 'tool_choice';
  if (choice === undefined) return { mode: undefined };
  if (typeof choice === 'string') {
    if (!MODES.includes(choice)) throw new Refused(`Expected '${at}' to be one of ${MODES.join(', ')}.`, at);
    if (choice === 'required' && functions.length === 0)
      throw new Refused("'tool_choice' requires a tool, and there are no 'tools'.", at);
    return { mode: choice };
  }
  if (!isObject(choice)) throw new Refused(`Expected '${at}' to be a string or an object.`, at);
  const known = (name: string, where: string) => {
    if (!functions.some((each) => each.name === name))
      throw new Refused(`There is no tool '${name.slice(0, 100)}' in 'tools'.`, where);
    return name;
  };
  if (choice['type'] === 'function') {
    const name = known(text(choice, 'name', `${at}.name`), `${at}.name`);
    return { mode: { type: 'function', function: { name } } };
  }
  if (choice['type'] === 'allowed_tools') {
    const mode = text(choice, 'mode', `${at}.mode`);
    if (mode !== 'auto' && mode !== 'required')
      throw new Refused(`Expected '${at}.mode' to be auto or required.`, `${at}.mode`);
    const tools = given(choice, 'tools');
    if (!Array.isArray(tools)) throw new Refused(`Expected '${at}.tools' to be a list.`, `${at}.tools`);
    const allowed = tools.map((tool, index) => {
      const where = `${at}.tools[${index}]`;
      if (!isObject(tool) || tool['type'] !== 'function')
        throw new Refused(`Expected '${where}' to name a function.`, where);
      return known(text(tool, 'name', `${where}.name`), where);
    });
    return { mode, allowed };
  }
  throw new Refused(
    `'${at}' of type '${String(choice['type']).slice(0, 100)}' names a tool that is not hosted here.`,
    `${at}.type`,
  );
}
