import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres, type TestPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { type Clients, clientsOf } from './clients.ts';
import { deployAgent } from './deploy.ts';
import { startTestPlatform, type TestPlatform } from './platform-process.ts';

export interface ServerGroupOptions {
  /** Which sandboxes they make, as arguments. */
  sandbox: readonly string[];
  /** Short, so that a server that is gone is given up within the test; long enough for a busy machine to keep its own. */
  leaseSeconds: number;
  env?: Record<string, string>;
}

export interface ServerPair {
  a: TestPlatform;
  b: TestPlatform;
  throughA: Clients;
  throughB: Clients;
  /** Of the agent, which both serve. */
  arn: string;
}

const PROBE_AGENT = join(import.meta.dirname, 'probe-agent');

/** Servers on one PostgreSQL, with one master key and one store of objects, and sandboxes of the same machine. */
export class ServerGroup {
  /** Holds the data directory of each server under its name. */
  readonly home: string;
  readonly #postgres: TestPostgres;
  readonly #options: ServerGroupOptions;
  readonly #databaseUrl: string;
  readonly #started = new Set<TestPlatform>();

  private constructor(postgres: TestPostgres, databaseUrl: string, home: string, options: ServerGroupOptions) {
    this.#postgres = postgres;
    this.#databaseUrl = databaseUrl;
    this.home = home;
    this.#options = options;
  }

  static async open(options: ServerGroupOptions): Promise<ServerGroup> {
    const postgres = await startPostgres();
    const home = await mkdtemp(join(tmpdir(), 'agentplatform-two-'));
    await mkdir(join(home, 'objects'), { mode: 0o700 });
    return new ServerGroup(postgres, await postgres.createDatabase(), home, options);
  }

  /** Starts the server of that name, anew when it ran before. */
  async start(name: string): Promise<TestPlatform> {
    const dataDir = this.dataDir(name);
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    // The same objects for all, as a directory that their machines mount.
    await symlink(join(this.home, 'objects'), join(dataDir, 'objects')).catch(() => undefined);
    const { sandbox, leaseSeconds, env } = this.#options;
    const platform = await startTestPlatform({
      dataDir,
      env: { ...env, AGENTPLATFORM_DATABASE_URL: this.#databaseUrl },
      args: [
        ...[...sandbox, '--servers-lease-seconds', String(leaseSeconds)],
        ...['--secrets-key-file', join(this.home, 'key')],
      ],
    });
    this.#started.add(platform);
    return platform;
  }

  /** Starts servers a and b, with clients of each, and deploys the probe agent through the first. */
  async pair(): Promise<ServerPair> {
    const a = await this.start('a');
    const throughA = clientsOf(a);
    const [{ arn }, b] = await Promise.all([deployAgent(a, throughA, { folder: PROBE_AGENT }), this.start('b')]);
    return { a, b, throughA, throughB: clientsOf(b, { credentials: a.credentials }), arn };
  }

  /** Runs statements on the database that they share. */
  sql(statements: string): Promise<void> {
    return this.#postgres.exec(this.#databaseUrl, statements);
  }

  /** The same in a transaction that stays open until what it gives is called. */
  hold(statements: string): Promise<() => Promise<void>> {
    return this.#postgres.hold(this.#databaseUrl, statements);
  }

  dataDir(name: string): string {
    return join(this.home, name);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#started].map((platform) => platform.end()));
    await this.#postgres.stop();
    await rm(this.home, { recursive: true, force: true });
  }
}
