import type { Pool } from 'undici';
import type { Sandbox, Usage } from '../sandbox/index.ts';
import { connectTo, disconnect } from './sandbox-connection.ts';
import type { SessionPlan } from './session-plan.ts';

/** A sandbox that runs and answers, and that no session has. */
export class Standby {
  readonly sandbox: Sandbox;
  readonly connection: Pool;
  readonly #plan: SessionPlan;
  #exited = false;

  constructor(sandbox: Sandbox, plan: SessionPlan) {
    this.sandbox = sandbox;
    this.connection = connectTo(sandbox, plan.port);
    this.#plan = plan;
    void sandbox.exited.then(() => {
      this.#exited = true;
    });
  }

  /** What it has used so far if it answers its health route within `timeoutMs` and is no older than it may be; undefined for one that is not fit to be a session. */
  async check(timeoutMs: number): Promise<Usage | undefined> {
    try {
      const [usage, , current] = await Promise.all([
        this.sandbox.usage(),
        this.#plan.health(this.connection, AbortSignal.timeout(timeoutMs)),
        this.#plan.pool?.current?.(this.sandbox),
      ]);
      return this.#exited || current === false ? undefined : usage;
    } catch {
      return undefined;
    }
  }

  /** Removes it. Rejects when something of it could not be removed. */
  async end(): Promise<void> {
    disconnect(this.connection);
    await this.sandbox.stop({ graceMs: 0 });
    await this.#plan.volumes?.detach(this.sandbox.id);
  }
}
