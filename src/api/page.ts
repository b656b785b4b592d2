import { createHash } from 'node:crypto';

/**
 * The status page: one file without anything from elsewhere. It holds no word about this installation; it asks
 * /api/v1/status every two seconds, with a token where one is needed, and shows what is wrong first.
 */

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2127; --dim: #5d6772; --line: #dde2e7; --ground: #fafbfc; --card: #fff;
  --well: #14743c; --warn: #8a5a00; --bad: #b42318; --wash: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --dim: #98a3ae; --line: #2c343c; --ground: #12161a;
  --card: #191f25; --well: #5fc38b; --warn: #e0ad4b; --bad: #ff8577; --wash: #3a1c1a; } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: baseline; margin-bottom: 1rem }
h1 { font-size: 1.25rem; margin: 0 } h2 { font-size: .95rem; margin: 1.75rem 0 .5rem }
small, .dim { color: var(--dim) }
.well { color: var(--well) } .warn { color: var(--warn) } .bad { color: var(--bad) }
#state { font-weight: 600 } #meta { margin-left: auto }
.box { background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto }
.trouble { background: var(--wash); border-color: var(--bad) }
ul.box { margin: 0; padding: .75rem 1rem .75rem 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .9rem; border-top: 1px solid var(--line); vertical-align: top }
tr:first-child th { border-top: 0 } th { font-weight: 500; color: var(--dim); font-size: .85rem; white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
code { font: .92em ui-monospace, monospace; overflow-wrap: break-word }
form { display: flex; gap: .5rem; padding: 1rem } input { flex: 1; min-width: 0 }
input, button { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: .35rem .7rem }
`;

const SCRIPT = `
const root = document.querySelector('main'), state = document.querySelector('#state'), meta = document.querySelector('#meta');
const el = (tag, options, ...children) => {
  const made = Object.assign(document.createElement(tag), options);
  made.append(...children.filter((child) => child !== undefined && child !== ''));
  return made;
};
const tone = { well: 'well', serving: 'well', ready: 'well', starting: 'warn', idle: 'dim', draining: 'warn', cooling: 'warn', 'half-open': 'warn',
  unknown: 'dim', silent: 'warn', open: 'bad', unwell: 'bad', down: 'bad', 'not ready': 'bad' };
const word = (text, more) => el('span', { className: tone[text] || '' }, text + (more || ''));
const code = (text) => el('code', {}, text);
const number = (value) => ({ number: true, value: String(value) });
const cell = (tag, content) => content && content.number
  ? el(tag, { className: 'number' }, content.value) : el(tag, {}, ...[content].flat());
const table = (head, rows) => el('div', { className: 'box' }, el('table', {},
  el('tr', {}, ...head.map((name) => name.startsWith('#')
    ? el('th', { className: 'number' }, name.slice(1)) : el('th', {}, name))),
  ...rows.map((cells) => el('tr', {}, ...cells.map((content) => cell('td', content))))));
const section = (title, content) => [el('h2', {}, title), content];
const soon = (ms) => ms === undefined ? '' : ' for ' + (ms < 1000 ? ms + ' ms' : Math.round(ms / 1000) + ' s');

function show(s) {
  const well = s.trouble.length === 0;
  state.className = well ? 'well' : 'bad';
  state.textContent = well ? 'all well' : s.trouble.length + (s.trouble.length === 1 ? ' trouble' : ' troubles');
  document.title = (well ? '' : '(' + s.trouble.length + ') ') + 'Armature';
  meta.textContent = 'snapshot ' + s.snapshot.number + ' · ' + new Date(s.at).toLocaleTimeString();
  const parts = [];
  if (!well) parts.push(el('ul', { className: 'box trouble' }, ...s.trouble.map((it) => el('li', {}, it.message))));
  parts.push(...section('Routes', table(['route', 'state', '#waiting', 'targets', 'ladder'], s.routes.map((it) => [
    code(it.route), word(it.ready ? 'ready' : 'not ready'), number(it.waiting),
    it.targets.map((target) => target.backend + (it.targets.length > 1 ? ' ' + target.weight : '')).join(', '), it.ladder.join(', ')]))));
  parts.push(...section('Backends', table(['backend', 'engine', 'endpoint', 'state', '#in flight', '#limit'], s.backends.flatMap((it) => {
    const name = [code(it.backend), el('br', {}), el('small', {}, it.hardware === 'unknown' ? '' : it.hardware)];
    const engine = [it.engine, el('br', {}), el('small', {}, it.model)];
    if (it.endpoints.length === 0) return [[name, engine, el('span', { className: 'dim' }, it.host ? it.host.note : ''),
      word(it.host ? it.host.state : 'down'), number(0), number(0)]];
    return it.endpoints.map((end, i) => [i ? '' : name, i ? '' : engine, code(end.endpoint), word(end.state, soon(end.forMs)),
      number(end.inflight), number(end.limit)]);
  }))));
  parts.push(...section('Workers', table(['worker', 'state', '#in flight', '#facts waiting', '#snapshot', '#pid'], s.workers.map((it) => [
    code(it.part), word(it.state), number(it.inflight), number(it.factsWaiting), number(it.snapshot ?? '–'), number(it.pid ?? '–')]))));
  const c = s.configuration;
  const remarks = [...c.overlays.map((it) => [code(it.path), 'changed live by ' + it.actor + ', ' + new Date(it.at).toLocaleString()]),
    ...c.restart.map((path) => [code(path), 'takes effect at the next start']),
    ...c.notices.map((it) => [code(it.path), it.message])];
  if (remarks.length) parts.push(...section('Configuration', table(['path', 'remark'], remarks)));
  parts.push(el('p', { className: 'dim' }, el('small', {}, 'Callers: ' + c.gateway + ' · configuration: ' + c.file + ' · ledger: '
    + s.ledger.events.toLocaleString() + ' events, ' + (s.ledger.bytes / 1048576).toFixed(1) + ' MiB')));
  root.replaceChildren(...parts);
}

function askToken() {
  const input = el('input', { type: 'password', placeholder: 'admin token', autocomplete: 'off' });
  const form = el('form', { className: 'box' }, input, el('button', {}, 'Show'));
  form.onsubmit = (event) => { event.preventDefault(); sessionStorage.token = input.value; look(); };
  state.className = 'dim'; state.textContent = 'a token is needed';
  root.replaceChildren(form); input.focus();
}

let timer;
async function look() {
  clearTimeout(timer);
  const token = sessionStorage.token;
  try {
    const answer = await fetch('/api/v1/status', { headers: token ? { authorization: 'Bearer ' + token } : {}, cache: 'no-store' });
    if (answer.status === 401) { delete sessionStorage.token; return askToken(); }
    if (!answer.ok) throw new Error('status ' + answer.status);
    show(await answer.json());
  } catch (error) {
    state.className = 'bad'; state.textContent = 'no answer from control (' + error.message + ')';
  }
  timer = setTimeout(look, document.hidden ? 10000 : 2000);
}
document.onvisibilitychange = () => document.hidden || look();
look();
`;

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Armature</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<header><h1>Armature</h1><span id="state" class="dim" role="status">asking</span><small id="meta"></small></header>
<main><noscript>This page asks <a href="/api/v1/status">/api/v1/status</a> by a script; \`armature status\` shows the same.</noscript></main>
<script>${SCRIPT}</script>
</body>
</html>
`;

const digest = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Lets the page run what is in it, ask its own listener, and nothing else. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${digest(SCRIPT)}`,
  `style-src ${digest(STYLE)}`,
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
