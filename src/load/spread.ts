import type { LoadRequest, Sender, Watch } from './contracts.ts';

/** Sends to equal servers: each request goes to the one with the least on its way, so that none has more than its part. */
export class SpreadSender implements Sender {
  readonly #servers: { sender: Sender; base: string; inflight: number }[];
  /** Most requests on their way at one of them. */
  inflightMost = 0;

  constructor(servers: readonly { sender: Sender; base: string }[]) {
    this.#servers = servers.map((server) => ({ ...server, inflight: 0 }));
  }

  /** `request.path` is what comes behind the path of the server. */
  send(request: LoadRequest, watch: Watch): () => void {
    const server = this.#servers.reduce((least, each) => (each.inflight < least.inflight ? each : least));
    server.inflight++;
    this.inflightMost = Math.max(this.inflightMost, server.inflight);
    let over = false;
    const left = () => {
      if (!over) server.inflight--;
      over = true;
    };
    const abort = server.sender.send(
      { ...request, path: server.base + request.path },
      {
        onSent: () => watch.onSent(),
        onToken: () => watch.onToken(),
        onEnd: (outcome) => {
          left();
          watch.onEnd(outcome);
        },
      },
    );
    return () => {
      left();
      abort();
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ sender }) => sender.close()));
  }
}
