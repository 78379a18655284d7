import { type ChildProcess, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import { HELPER_ENV } from '../../processes/index.ts';
import { Timers } from '../../timers.ts';
import { isGone } from '../host/is-gone.ts';
import { SandboxError } from '../sandbox.ts';

const SCRIPT = fileURLToPath(new URL('./lease-guard.pl', import.meta.url));
const READY_TIMEOUT_MS = 15_000;
const RESTART_MS = 500;

export interface LeaseGuardOptions {
  /** `lease-file.ts`. */
  lease: string;
  /** Names the guard that is at work; gone after a reboot. */
  pidFile: string;
  /** The control group above those of all containers, as a directory. */
  group: string;
  clock: Clock;
  log: Logger;
}

/** The server's end of `lease-guard.pl`, which ends containers that no server can end any more. */
export class LeaseGuard {
  readonly #options: LeaseGuardOptions;
  readonly #timers: Timers;
  #child: Promise<ChildProcess> | undefined;
  #closed = false;

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
  }

  /** Sees that it is at work, which it stays until `close`; does nothing where there is no lease. Rejects with SandboxError `unavailable`. */
  async ensure(): Promise<void> {
    if (this.#child === undefined && (await isGone(this.#options.lease))) return;
    this.#child ??= this.#start();
    await this.#child;
  }

  /** Ends it when there is nothing left for it to guard, and otherwise leaves it to that. */
  async close({ idle }: { idle: boolean }): Promise<void> {
    this.#closed = true;
    this.#timers.close();
    const child = await this.#child?.catch(() => undefined);
    if (idle) child?.kill('SIGKILL');
  }

  async #start(): Promise<ChildProcess> {
    const { lease, pidFile, group, clock } = this.#options;
    const child = spawn('perl', [SCRIPT, lease, pidFile, group], {
      // In a session of its own: Ctrl-C at the server's terminal is for the server.
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      cwd: '/',
      env: HELPER_ENV,
    });
    let failure = 'it ended without a word';
    child.once('error', (error) => {
      failure = error.message;
    });
    let ready = false;
    child.once('exit', () => {
      this.#child = undefined;
      if (ready) this.#restart();
    });
    const giveUp = clock.after(READY_TIMEOUT_MS, () => child.kill('SIGKILL'));
    ready = (await text(child.stdout)) === 'ready\n';
    giveUp();
    if (ready) {
      child.unref();
      return child;
    }
    this.#child = undefined;
    child.kill('SIGKILL');
    throw new SandboxError(
      'unavailable',
      `Containers have no guard that ends them when their server is gone: ${failure}.`,
    );
  }

  #restart(): void {
    if (this.#closed) return;
    const { log } = this.#options;
    this.#timers.after(RESTART_MS, () => {
      this.ensure().catch((error: unknown) =>
        log.error({ err: error }, 'the guard of the containers does not start again'),
      );
    });
  }
}
