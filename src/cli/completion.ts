import { type Action, askedWrongly, type Command, defineCommand } from './command.ts';
import { COMMON_OPTIONS, flagOf } from './program.ts';
import { register } from './register.ts';

/** One word of the command line and what may follow it. */
interface Node {
  words: string[];
  children: Record<string, Node>;
}

export const command = defineCommand({
  arguments: [{ name: 'SHELL', summary: 'bash, zsh or fish' }],
  details: [
    'bash:  armature completion bash > ~/.local/share/bash-completion/completions/armature',
    'zsh:   armature completion zsh > "${fpath[1]}/_armature"',
    'fish:  armature completion fish > ~/.config/fish/completions/armature.fish',
  ].join('\n'),
  async run({ args: [shell = ''], output }) {
    const script = SCRIPTS[shell];
    if (!script) throw askedWrongly(`no completion for '${shell}'; there is bash, zsh and fish`);
    output.print(script(await words()));
  },
});

const COMMON_FLAGS = COMMON_OPTIONS.map(({ flags }) => /--[a-z]+/.exec(flags)![0]).concat('--help');

async function words(): Promise<Node> {
  const children: Record<string, Node> = {};
  for (const [name, entry] of Object.entries(register)) children[name] = node((await entry.load()).command);
  return { words: [...COMMON_FLAGS, '--version'], children };
}

function node(command: Command): Node {
  if (!('actions' in command)) return { words: flags(command), children: {} };
  const children = Object.entries(command.actions).map(([name, action]) => [name, node(action)] as const);
  return { words: COMMON_FLAGS, children: Object.fromEntries(children) };
}

function flags(action: Action): string[] {
  return [...Object.keys(action.options ?? {}).map(flagOf), ...COMMON_FLAGS];
}

/** Every path of words with what may follow it: `''`, `'keys'`, `'keys create'`. */
function paths(node: Node, prefix = ''): { path: string; next: string[]; leaf: boolean }[] {
  const names = Object.keys(node.children);
  return [
    { path: prefix, next: [...names, ...node.words], leaf: names.length === 0 },
    ...names.flatMap((name) => paths(node.children[name]!, prefix === '' ? name : `${prefix} ${name}`)),
  ];
}

const SCRIPTS: Record<string, (root: Node) => string> = { bash, zsh, fish };

function cases(root: Node): string {
  return paths(root)
    .map(({ path, next }) => `    '${path}') words='${next.join(' ')}' ;;`)
    .join('\n');
}

/** Groups keep their own first word and an action's; files complete after `-c` and `--data`. */
function bash(root: Node): string {
  const groups = Object.keys(root.children).filter(
    (name) => Object.keys(root.children[name]!.children).length > 0,
  );
  return `# bash completion for armature
_armature() {
  local word words='' path='' i
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  case $before in -c|--config) COMPREPLY=($(compgen -f -- "$current")); return ;; --data) COMPREPLY=($(compgen -d -- "$current")); return ;; esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case $word in -*) continue ;; esac
    case $path in
      '') path=$word ;;
      ${groups.join('|') || "' '"}) path="$path $word" ;;
    esac
  done
  case $path in
${cases(root)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _armature armature`;
}

function zsh(root: Node): string {
  return `#compdef armature
autoload -U +X bashcompinit && bashcompinit
${bash(root)}`;
}

function fish(root: Node): string {
  const lines = Object.entries(register).map(
    ([name, { summary }]) =>
      `complete -c armature -f -n __fish_use_subcommand -a ${name} -d '${summary.replaceAll("'", "\\'")}'`,
  );
  for (const [name, { words, children }] of Object.entries(root.children)) {
    const seen = `-n '__fish_seen_subcommand_from ${name}'`;
    for (const action of Object.keys(children)) lines.push(`complete -c armature -f ${seen} -a ${action}`);
    for (const flag of words) lines.push(`complete -c armature ${seen} -l ${flag.slice(2)}`);
  }
  return ['# fish completion for armature', ...lines].join('\n');
}
