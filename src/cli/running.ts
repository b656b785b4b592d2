import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { askedWrongly, CommandError, type CommonOptions, failed } from './command.ts';

/** What `up` writes to `DATA/run/addresses.json`. */
export interface Addresses {
  gateway: string;
  admin: string;
}

export interface CallInit {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Sent as JSON; a Buffer as it is. */
  body?: unknown;
}

/** There is none, or none that answers. */
export class NotRunning extends CommandError {
  constructor(message: string) {
    super(1, message);
  }
}

/** It went away after it was asked, or in the middle of its answer: whether it did what it was asked is not known. */
export class BrokeOff extends CommandError {
  constructor(message: string) {
    super(1, message);
  }
}

/** It may be back soon, as one that is started again. */
export const isAway = (error: unknown): error is NotRunning | BrokeOff =>
  error instanceof NotRunning || error instanceof BrokeOff;

/** It answered, and said no. */
export class Refusal extends CommandError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(1, message);
    this.status = status;
  }
}

/** A running Armature, seen through its admin listener. */
export interface Running {
  /** Such as `http://127.0.0.1:7071`, without a slash at its end. */
  readonly admin: string;
  /** The gateway's address; undefined where only the admin listener's is known. */
  readonly gateway: string | undefined;
  /** Asks `path`, such as `/api/v1/status`, and gives the JSON of its answer. Throws a Refusal for anything but a 2xx. */
  call<T>(path: string, init?: CallInit): Promise<T>;
  /** Asks `path` and gives the lines of its answer as they come, without an end to waiting. */
  lines(path: string, init?: CallInit): AsyncIterable<string>;
}

interface Found {
  admin: string;
  gateway?: string;
  token: string | undefined;
}

/**
 * Finds a running Armature: by `--admin`, by the data directory where `--data` was given, by `-c`, by
 * ARMATURE_ADMIN, and at last by the usual data directory. Throws `failed` where none is to be found. Whether it
 * answers shows with the first call.
 */
export async function findRunning(common: CommonOptions): Promise<Running> {
  const found = await find(common);
  return {
    admin: found.admin,
    gateway: found.gateway,
    call: (path, init) => call(found, path, init),
    lines: (path, init) => lines(found, path, init),
  };
}

/** Asks a running Armature to do something. */
export async function post<Answer>(common: CommonOptions, path: string, body?: unknown): Promise<Answer> {
  const running = await findRunning(common);
  return running.call<Answer>(path, { method: 'POST', ...(body !== undefined && { body }) });
}

async function find(common: CommonOptions): Promise<Found> {
  const here = readAddresses(common.data);
  if (common.admin !== undefined) return at(addressOf(common.admin, '--admin'), here, common.data);
  if (common.dataGiven && here) return at(here.admin, here, common.data);
  if (common.config !== undefined) return at(await configuredAdmin(common.config), here, common.data);
  const named = process.env.ARMATURE_ADMIN;
  if (!common.dataGiven && named) return at(addressOf(named, 'ARMATURE_ADMIN'), here, common.data);
  if (here) return at(here.admin, here, common.data);
  throw new NotRunning(
    `no Armature runs with the data directory ${common.data}. Start one with \`armature up\`, or say where it is: --data DIR, --admin URL, -c FILE or ARMATURE_ADMIN`,
  );
}

/** The token of the data directory goes only to the address that the data directory names. */
function at(admin: string, here: Addresses | undefined, data: string): Found {
  if (here && here.admin === admin)
    return { ...here, token: readIfThere(join(data, 'run', 'admin.token'))?.trim() };
  return { admin, token: process.env.ARMATURE_ADMIN_TOKEN };
}

function addressOf(text: string, from: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw askedWrongly(`${from}: expected an address such as http://127.0.0.1:7071, got '${text}'`);
  }
  return text.replace(/\/+$/, '');
}

function readAddresses(data: string): Addresses | undefined {
  const text = readIfThere(join(data, 'run', 'addresses.json'));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Addresses;
  } catch {
    throw failed(`${join(data, 'run', 'addresses.json')} is not JSON; remove it, or start Armature again`);
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw failed(`cannot read ${path}: ${(error as Error).message}`);
  }
}

async function call<T>(found: Found, path: string, init: CallInit = {}): Promise<T> {
  const answer = await ask(found, path, init);
  const text = await textOf(found, answer);
  if (text === '') return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw failed(
      `${found.admin}${path} answered something that is no JSON: is this Armature's admin listener?`,
    );
  }
}

async function* lines(found: Found, path: string, init: CallInit = {}): AsyncIterable<string> {
  const answer = await ask(found, path, init);
  try {
    for await (const line of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line !== '') yield line;
    }
  } catch (error) {
    throw cutOff(found, error);
  } finally {
    answer.destroy();
  }
}

/** A listener that goes away before its answer has come, or in the middle of it. */
function cutOff(found: Found, error: unknown): Error {
  return new BrokeOff(`${found.admin} broke off its answer (${(error as Error).message})`);
}

/** Gives the answer once its head is there and says 2xx; throws a Refusal with the reason otherwise. */
async function ask(found: Found, path: string, { method = 'GET', body }: CallInit): Promise<IncomingMessage> {
  checkNames(path);
  const url = new URL(found.admin + path);
  const headers: Record<string, string> = { accept: 'application/json' };
  if (found.token) headers.authorization = `Bearer ${found.token}`;
  const bytes = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  if (bytes) {
    headers['content-type'] = bytes === body ? 'application/octet-stream' : 'application/json';
    headers['content-length'] = String(bytes.length);
  }
  const [send, connected] =
    url.protocol === 'https:'
      ? ([httpsRequest, 'secureConnect'] as const)
      : ([httpRequest, 'connect'] as const);

  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    let reached = false;
    const request = send(url, { method, headers })
      .on('socket', (socket) => socket.once(connected, () => (reached = true)))
      .on('response', resolve)
      .on('error', (error: NodeJS.ErrnoException) => {
        if (reached || request.reusedSocket) reject(cutOff(found, error));
        else reject(new NotRunning(`no Armature answers at ${found.admin} (${error.code ?? error.message})`));
      });
    request.end(bytes);
  });
  const status = answer.statusCode ?? 0;
  if (status >= 200 && status < 300) return answer;
  throw new Refusal(status, refusal(found, path, status, await textOf(found, answer)));
}

/** An address with a name that is empty, `.` or `..` in it would be another one. */
function checkNames(path: string): void {
  const [names = ''] = path.split('?');
  if (names === '/') return;
  const odd = names
    .split('/')
    .slice(1)
    .find((name) => ['', '.', '..'].includes(name));
  if (odd === '') throw askedWrongly('a name is empty');
  if (odd !== undefined) throw askedWrongly(`'${odd}' is no name`);
}

function refusal(found: Found, path: string, status: number, text: string): string {
  const said = messageOf(text);
  if (status === 401 || status === 403) {
    const hint = found.token
      ? 'its token was not accepted'
      : 'it wants a token: set ARMATURE_ADMIN_TOKEN, or --data to the data directory of `armature up`';
    return `${found.admin} refused: ${hint}${said ? ` (${said})` : ''}`;
  }
  return said ?? `${found.admin}${path} answered ${status}`;
}

/** What an error answer says: OpenAI's form, `{"error": "..."}`, or nothing that is known. */
function messageOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: string | { message?: string } };
    return typeof error === 'string' ? error : error?.message;
  } catch {
    return undefined;
  }
}

async function textOf(found: Found, answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of answer) pieces.push(piece as Buffer);
  } catch (error) {
    throw cutOff(found, error);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** `admin.listen` of a configuration file, as an address that a client can ask. */
async function configuredAdmin(file: string): Promise<string> {
  const { loadConfig } = await import('../config/load.ts');
  const loaded = loadConfig(file);
  if (!loaded.ok) throw askedWrongly(`${file} cannot be used; \`armature check -c ${file}\` says why`);
  const { listen, tls } = loaded.config.settings.admin;
  // What listens on every address is asked on loopback.
  const address = listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');
  return `${tls ? 'https' : 'http'}://${address}`;
}
