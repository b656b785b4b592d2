import { eventually, within } from './waiting.ts';

/** Where the inspector listens, as a process prints it. */
const LISTENING = /Debugger listening on (ws:\/\/\S+)/g;

/** Looks into a running process through Node's own inspector. */
export class Inspector {
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  /** Bytes of the heap that are in use after a forced collection. */
  async heapBytes(): Promise<number> {
    const socket = new WebSocket(this.#address);
    try {
      await within('the inspector answers', 5000, once(socket, 'open'));
      // The second collection takes what the first one's finalizers let go.
      for (let i = 0; i < 2; i++) await call(socket, 'HeapProfiler.collectGarbage');
      const usage = await call(socket, 'Runtime.getHeapUsage');
      return usage['usedSize'] as number;
    } finally {
      socket.close();
    }
  }
}

/**
 * Opens the inspector of a process that runs with `--inspect-port=0`, so that each finds a port of its own. `logs` reads
 * what it prints. Once for each process.
 */
export async function openInspector(pid: number, logs: () => string): Promise<Inspector> {
  const known = addresses(logs()).length;
  process.kill(pid, 'SIGUSR1');
  return new Inspector(await eventually('the inspector listens', () => addresses(logs())[known]));
}

function addresses(logs: string): string[] {
  return [...logs.matchAll(LISTENING)].map((match) => match[1]!);
}

function once(socket: WebSocket, event: 'open' | 'message'): Promise<Event> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(event, resolve, { once: true });
    socket.addEventListener('error', () => reject(new Error('the inspector does not answer')), {
      once: true,
    });
  });
}

async function call(socket: WebSocket, method: string): Promise<Record<string, unknown>> {
  socket.send(JSON.stringify({ id: 1, method }));
  for (;;) {
    const message = (await within(method, 20_000, once(socket, 'message'))) as MessageEvent;
    const { id, result, error } = JSON.parse(String(message.data));
    if (error) throw new Error(`${method}: ${error.message}`);
    if (id === 1) return result;
  }
}
