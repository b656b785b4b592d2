import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { EventSplitter } from '../protocols/openai/event-splitter.ts';
import { eventData } from '../protocols/openai/events.ts';
import { askedWrongly, defineCommand, failed } from './command.ts';
import type { Output } from './output.ts';
import { findRunning } from './running.ts';

export const command = defineCommand({
  arguments: [{ name: 'TEXT', summary: 'The question.', many: true }],
  options: {
    route: { value: 'NAME', summary: 'the route to ask (default: the only one, else chat)' },
    key: { value: 'KEY', summary: "a tenant's key (or ARMATURE_KEY)" },
  },
  details: 'Prints the answer as it comes. With --json it comes whole, as the API has it. Ctrl-C stops it.',
  async run({ args, options, common, output }) {
    const { gateway } = await findRunning(common);
    if (gateway === undefined) {
      throw failed(
        'where its gateway listens is not known: give the data directory of `armature up`, --data DIR',
      );
    }
    const key = options.key ?? process.env.ARMATURE_KEY;
    const caller: Caller = { gateway, headers: key === undefined ? {} : { authorization: `Bearer ${key}` } };
    const model = await chooseRoute(caller, options.route);
    const messages = [{ role: 'user', content: args.join(' ') }];

    const exchange = send(caller, '/v1/chat/completions', { model, messages, stream: !common.json });
    let stopped = false;
    const stop = () => {
      stopped = true;
      exchange.request.destroy();
    };
    process.once('SIGINT', stop);
    try {
      const answer = await exchange.answer;
      await expectSuccess(answer, gateway);
      const degraded = answer.headers['x-armature-degraded'];
      if (degraded !== undefined) output.note(`(degraded: this is the answer of rung '${degraded}')`);
      if (common.json) output.write(`${(await textOf(answer)).trimEnd()}\n`);
      else await printStream(answer, output);
    } catch (error) {
      if (stopped) throw failed('stopped');
      throw error;
    } finally {
      process.off('SIGINT', stop);
    }
  },
});

interface Caller {
  /** Without /v1. */
  gateway: string;
  headers: Record<string, string>;
}

/** Throws `askedWrongly`, with the routes that exist, where it cannot be told which one is meant. */
async function chooseRoute(caller: Caller, asked: string | undefined): Promise<string> {
  const answer = await send(caller, '/v1/models').answer;
  await expectSuccess(answer, caller.gateway);
  const { data } = JSON.parse(await textOf(answer)) as { data: { id: string }[] };
  const routes = data.map(({ id }) => id);
  const chosen = asked ?? (routes.length === 1 ? routes[0] : 'chat');
  if (chosen !== undefined && routes.includes(chosen)) return chosen;
  const known = routes.length === 0 ? 'there are none' : `there are ${routes.join(', ')}`;
  if (asked !== undefined) throw askedWrongly(`unknown route '${asked}'; ${known}`);
  throw askedWrongly(`which route? Say --route NAME; ${known}`);
}

/** Asks the gateway; `answer` comes once its head is there. */
function send(
  { gateway, headers }: Caller,
  path: string,
  body?: object,
): { request: ClientRequest; answer: Promise<IncomingMessage> } {
  const url = new URL(gateway + path);
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = open(url, {
    method: body ? 'POST' : 'GET',
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
  });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', (error: NodeJS.ErrnoException) => {
      reject(failed(`no gateway answers at ${gateway} (${error.code ?? error.message})`));
    });
  });
  request.end(body && JSON.stringify(body));
  return { request, answer };
}

async function expectSuccess(answer: IncomingMessage, gateway: string): Promise<void> {
  if (answer.statusCode === 200) return;
  const text = await textOf(answer);
  const again = answer.headers['retry-after'];
  const when = again === undefined ? '' : `; try again in ${again} s`;
  throw failed(`${messageOf(text) ?? `${gateway} answered ${answer.statusCode}`}${when}`);
}

/** Prints what the events say until the last one; throws `failed` where the answer does not come to its end. */
async function printStream(answer: IncomingMessage, output: Output): Promise<void> {
  const splitter = new EventSplitter();
  let printed = false;
  const endLine = () => {
    if (printed) output.write('\n');
  };
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      for (const event of splitter.push(piece)) {
        const data = eventData(event);
        if (data === '[DONE]') return endLine();
        const { text, error } = readEvent(data);
        if (error !== undefined) throw failed(error);
        if (text === '') continue;
        output.write(text);
        printed = true;
      }
    }
  } catch (error) {
    endLine();
    throw error;
  }
  endLine();
  throw failed('the answer broke off');
}

function readEvent(data: string | undefined): { text: string; error?: string } {
  if (data === undefined) return { text: '' };
  const event = JSON.parse(data) as { choices?: { delta?: { content?: string | null } }[]; error?: unknown };
  if (event.error) return { text: '', error: messageOf(data) ?? 'the answer ended in an error' };
  return { text: event.choices?.[0]?.delta?.content ?? '' };
}

/** The message of OpenAI's error object. */
function messageOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined; // Whatever answered is no gateway of ours.
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}
