import type { Dispatcher, Pool } from 'undici';
import type { Sandbox } from '../../../kernel/sandbox/index.ts';
import { connectTo, disconnect, type Lease } from '../../../kernel/sessions/index.ts';

/** Connections to ports of sandboxes beside the session's own, opened at first use and closed with the sandbox. */
export class EndpointConnections {
  readonly #pools = new WeakMap<Sandbox, Map<number, Pool>>();

  to({ session, sandbox, connection }: Lease, port: number): Dispatcher {
    if (port === session.row.port) return connection;
    const pools = this.#of(sandbox);
    const known = pools.get(port);
    if (known) return known;
    const opened = connectTo(sandbox, port);
    pools.set(port, opened);
    return opened;
  }

  #of(sandbox: Sandbox): Map<number, Pool> {
    const known = this.#pools.get(sandbox);
    if (known) return known;
    const pools = new Map<number, Pool>();
    this.#pools.set(sandbox, pools);
    void sandbox.exited.then(() => {
      for (const pool of pools.values()) disconnect(pool);
    });
    return pools;
  }
}
