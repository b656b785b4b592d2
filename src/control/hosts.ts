import type { Link, Message } from '../links/link.ts';
import type { HostToControl } from '../links/messages.ts';

export type HostLink = Link<HostToControl, Message>;

/** A model host that is connected, or that was when control last ran. */
export interface HostPeer {
  backend: string;
  pid: number;
  /** Where it serves; empty while it loads. */
  address: string;
  note: string;
  /** It waits for files that are not here yet. */
  fetching?: boolean;
}

/** What is kept over a restart of control, so that running hosts go on being used before they have connected again. */
export type RememberedHost = Pick<HostPeer, 'backend' | 'pid' | 'address'>;

export interface HostsOptions {
  /** A backend's address has come, gone or changed; `tookMs` is how long the start took of one that has come. */
  onChange: (backend: string, tookMs?: number) => void;
  /** A host that does not serve yet has connected, or its files have come; so long has it been starting. */
  onLoading: (backend: string, upMs: number) => void;
}

/** The model hosts on the other side of control's socket, and the address of each. */
export class Hosts {
  readonly #peers = new Map<HostLink, HostPeer>();
  readonly #onChange: HostsOptions['onChange'];
  readonly #onLoading: HostsOptions['onLoading'];
  #remembered: RememberedHost[];

  constructor(remembered: readonly RememberedHost[], { onChange, onLoading }: HostsOptions) {
    this.#remembered = [...remembered];
    this.#onChange = onChange;
    this.#onLoading = onLoading;
  }

  accept(link: HostLink, hello: HostToControl): void {
    link.onMessage = (message) => this.#told(link, message);
    link.onClose = () => {
      const gone = this.#peers.get(link);
      this.#peers.delete(link);
      if (gone?.address) this.#onChange(gone.backend);
    };
    this.#told(link, hello);
  }

  /** Hosts that were known from before and have not connected are believed no longer. */
  forget(): void {
    const forgotten = this.#remembered;
    this.#remembered = [];
    for (const { backend } of forgotten) this.#onChange(backend);
  }

  get peers(): readonly HostPeer[] {
    return [...this.#peers.values()];
  }

  /** What to remember: every host that serves. */
  get serving(): RememberedHost[] {
    const connected = this.peers.filter(({ address }) => address !== '');
    return [...connected, ...this.#remembered].map(({ backend, pid, address }) => ({
      backend,
      pid,
      address,
    }));
  }

  /** Where a backend is reached now; empty while no host of it serves. */
  addresses(backend: string): string[] {
    return [
      ...new Set(this.serving.filter((host) => host.backend === backend).map(({ address }) => address)),
    ];
  }

  #told(
    link: HostLink,
    { backend, pid, address, note, fetching, upMs, tookMs, leaving }: HostToControl,
  ): void {
    const before = this.#peers.get(link);
    const back = this.#remembered.some((host) => host.pid === pid && host.address === address);
    this.#remembered = this.#remembered.filter((host) => host.pid !== pid);
    const fetches = fetching === true;
    this.#peers.set(link, { backend, pid, address, note, fetching: fetches });
    if (before?.fetching !== fetches && address === '' && !leaving) this.#onLoading(backend, upMs);
    if (!back && address !== (before?.address ?? '')) this.#onChange(backend, tookMs);
  }
}
