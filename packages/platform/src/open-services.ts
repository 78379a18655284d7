import { every } from './kernel/every.ts';
import type { OperationHandlers } from './kernel/service.ts';
import { Retention, vacuum } from './kernel/storage/index.ts';
import type { Kernel } from './open-kernel.ts';
import { retentionRules } from './retention.ts';
import { type AnyManifest, type AnyModule, errorsOf, type Ports, type ServiceParts } from './service-module.ts';

/** A service with its code. */
export interface LoadedService {
  name: string;
  module: AnyModule;
}

/** A service that was made. */
interface OpenService extends LoadedService {
  parts: ServiceParts<never>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Loads the code of each. Rejects where two declare an error of one name. */
export async function loadServices(manifests: readonly AnyManifest[]): Promise<LoadedService[]> {
  errorsOf(manifests);
  return Promise.all(manifests.map(async ({ name, load }) => ({ name, module: (await load()).module })));
}

/** All services, made: what they serve, and their common life. */
export class Services {
  readonly #open: readonly OpenService[];

  private constructor(open: readonly OpenService[]) {
    this.#open = open;
  }

  /** Makes each after those that it needs. Throws when one needs what is not made before it, or has what another one has. */
  static async open(kernel: Kernel, services: readonly LoadedService[]): Promise<Services> {
    const open: OpenService[] = [];
    const ports: Record<string, unknown> = {};
    for (const { name, module } of services) {
      for (const need of module.needs ?? [])
        if (!(need in ports)) throw new Error(`service ${name} needs ${need}, which comes later or not at all`);
      const parts = await module.create(kernel, ports as unknown as Ports);
      ports[name] = parts.port;
      if (parts.sessionKind) kernel.sessions.kinds.add(parts.sessionKind, name);
      open.push({ name, module, parts });
    }
    const made = new Services(open);
    kernel.calls.serve(made.operations());
    for (const { name, parts } of open) for (const gauge of parts.metrics ?? []) kernel.metrics.declare(gauge, name);
    return made;
  }

  /** Handlers of all operations. Throws when two services serve the same one, or one serves what it does not declare. */
  operations(): OperationHandlers {
    const handlers: OperationHandlers = {};
    for (const { name, module, parts } of this.#open)
      for (const [operation, handler] of Object.entries(parts.operations)) {
        if (!module.operations?.includes(operation))
          throw new Error(`${name} serves ${operation}, which its module does not declare`);
        if (operation in handlers) throw new Error(`${operation} is served twice, the second time by ${name}`);
        Object.assign(handlers, { [operation]: handler });
      }
    return handlers;
  }

  get routes() {
    return this.#open.flatMap(({ parts }) => parts.routes ?? []);
  }

  get passes() {
    return this.#open.flatMap(({ parts }) => parts.passes ?? []);
  }

  get sockets() {
    return this.#open.flatMap(({ parts }) => parts.sockets ?? []);
  }

  /** Takes up the sessions of before, then starts each service in order; from here on everything that recurs does. */
  async start(kernel: Kernel): Promise<void> {
    const { closing, sessions, fileSystems, jobs, config, database, archive, clock, log, room } = kernel;
    const { storage } = fileSystems;
    await sessions.recover();
    await storage?.recover(new Set(sessions.all().map((session) => session.row.sandboxId)));
    sessions.start();
    room.relieveBy(() => sessions.evictLargest());
    await jobs.start();
    for (const { parts } of this.#open) {
      await parts.start?.();
      closing.add(async () => parts.stop?.());
    }
    const retention = new Retention({
      rules: [
        ...retentionRules(config, { database, archive, modules: this.#open.map(({ module }) => module) }),
        ...this.#open.flatMap(({ parts }) => parts.retention ?? []),
      ],
      clock,
      log,
    });
    retention.start();
    closing.add(() => retention.stop());
    const hourly = (what: string, run: () => Promise<unknown>): void =>
      closing.add(every(clock, HOUR_MS, what, run, log));
    hourly('collect unused images', async () => kernel.images.collect(await this.#imagesInUse()));
    hourly('forget old client tokens', () => kernel.idempotency.sweep());
    closing.add(
      every(clock, MINUTE_MS, 'forget client tokens beyond their bound', () => kernel.idempotency.trim(), log),
    );
    hourly('forget unused session storage', async () => storage?.collect());
    if (database.kind === 'pglite') hourly('clear dead rows away', () => vacuum(database));
  }

  /** Ends what WebSockets have left behind, such as shells. */
  async drain(): Promise<void> {
    await Promise.all(this.#open.map(({ parts }) => parts.drain?.()));
  }

  async #imagesInUse(): Promise<Set<string>> {
    const used = await Promise.all(this.#open.map(async ({ parts }) => (await parts.imagesInUse?.()) ?? []));
    return new Set(used.flatMap((digests) => [...digests]));
  }
}
