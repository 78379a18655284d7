import type { WebSocket } from 'ws';
import type { Clock } from '../../../kernel/clock.ts';
import type { Lease } from '../../../kernel/sessions/index.ts';
import { Shell } from './shell.ts';

/** How long a shell waits for its client to come back, in ms. */
const DETACHED_MS = 15 * 60_000;
const MAX_SHELLS_PER_SESSION = 16;

/** The shells of all live sessions, by sandbox: a new sandbox under an old session id has none of its shells. */
export class Shells {
  readonly #clock: Clock;
  readonly #bySandbox = new Map<string, Map<string, Promise<Shell>>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The session's shell of that name, made if there is none, or undefined when it has too many. Rejects with SandboxError. */
  async open(lease: Lease, shellId: string): Promise<{ shell: Shell; reconnected: boolean } | undefined> {
    const { sandbox } = lease;
    let shells = this.#bySandbox.get(sandbox.id);
    if (!shells) {
      shells = new Map();
      this.#bySandbox.set(sandbox.id, shells);
      void sandbox.exited.then(() => this.#bySandbox.delete(sandbox.id));
    }
    const known = shells.get(shellId);
    if (known) return { shell: await known, reconnected: true };
    if (shells.size >= MAX_SHELLS_PER_SESSION) return undefined;
    const starting = Shell.start(shellId, sandbox, this.#clock, () => shells.delete(shellId));
    shells.set(shellId, starting);
    starting.catch(() => shells.delete(shellId));
    return { shell: await starting, reconnected: false };
  }

  /** Lets a client go; its shell waits a quarter of an hour for it. */
  leave(shell: Shell, client: WebSocket): void {
    shell.detach(client, DETACHED_MS);
  }

  /** Ends every shell. */
  async close(): Promise<void> {
    for (const shells of this.#bySandbox.values())
      for (const starting of shells.values()) await starting.then((shell) => shell.kill()).catch(() => undefined);
    this.#bySandbox.clear();
  }
}
