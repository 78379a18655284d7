import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Ready } from '../../packages/platform/src/announce.ts';
import { LEAN_PLATFORM } from '../../scripts/test/lean-platform.ts';
import { WASM_FLAG } from '../../scripts/test/wasm-flag.ts';

const ROOT = resolve(import.meta.dirname, '../..');

export interface TestPlatform {
  ready: Ready;
  dataDir: string;
  pid: number;
  /** The access key of the credentials file. */
  credentials: { accessKeyId: string; secretAccessKey: string };
  /** What the AWS SDKs read from their environment. */
  env: Record<string, string>;
  /** Everything that the server wrote to stderr so far. */
  log(): string;
  /** Ends the server: SIGTERM is orderly, SIGKILL is a crash. Resolves with its exit status when it is gone. */
  end(signal?: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
  /** Ends the server and removes its data. */
  dispose(): Promise<void>;
}

export interface StartOptions {
  /** Kept by the caller, for a second start on the same data. */
  dataDir?: string;
  /** Another than a free one: what comes back after a kill is found where it was. */
  port?: number;
  args?: string[];
  env?: Record<string, string>;
  /** Of Node, before the script. */
  nodeFlags?: readonly string[];
  /** A file that it has as `/etc/hosts`; needs root. */
  hosts?: string;
  /** Kills the server when it is aborted, also on its way up. */
  signal?: AbortSignal;
  /** With what starts the server again when it ends unasked, as `npm run platform` does; `pid` and `end` are that one's then. */
  supervised?: boolean;
}

/** Starts the real server in a process of its own, on a free port and data of its own. */
export async function startTestPlatform(options: StartOptions = {}): Promise<TestPlatform> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'agentplatform-test-')));
  const script = options.supervised ? 'scripts/platform.mjs' : 'packages/platform/src/main.ts';
  const args = [script, '--port', String(options.port ?? 0), '--data', dataDir, '--json', ...(options.args ?? [])];
  // Benchmarks, which come here too, measure it as it is.
  const flags = process.env.VITEST ? [WASM_FLAG] : [];
  const [command, ...before] = options.hosts === undefined ? [process.execPath] : withHosts(options.hosts);
  const child = spawn(command, [...before, ...flags, ...(options.nodeFlags ?? []), ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...LEAN_PLATFORM,
      ...options.env,
    },
  });
  options.signal?.addEventListener('abort', () => child.kill('SIGKILL'), { once: true });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const ready = await readyLine(child, () => log);
  const credentials = await readCredentials(ready.credentialsFile);
  const end = async (signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill(signal);
      await exited;
    }
    return child.exitCode;
  };
  return {
    ready,
    dataDir,
    pid: child.pid ?? 0,
    credentials,
    env: {
      AWS_SHARED_CREDENTIALS_FILE: ready.credentialsFile,
      AWS_PROFILE: ready.profile,
      AWS_REGION: ready.region,
      AWS_ENDPOINT_URL: ready.endpoint,
    },
    log: () => log,
    end,
    dispose: async () => {
      await end();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Runs Node where that file stands for `/etc/hosts`, in a process of the same number. */
function withHosts(file: string): [string, ...string[]] {
  const script = 'mount --bind "$0" /etc/hosts; exec "$@"';
  return ['unshare', '--mount', 'sh', '-ec', script, file, process.execPath];
}

async function readyLine(child: ChildProcess, log: () => string): Promise<Ready> {
  if (!child.stdout) throw new Error('the server has no stdout');
  for await (const line of createInterface({ input: child.stdout, signal: AbortSignal.timeout(120_000) })) {
    if (!line.startsWith('{"ready":true')) continue;
    // Whoever stops reading would stop the server, too, once it has said enough.
    child.stdout.resume();
    return JSON.parse(line);
  }
  throw new Error(`the server did not start:\n${log()}`);
}

/** The first access key of a credentials file. */
export async function readCredentials(file: string): Promise<{ accessKeyId: string; secretAccessKey: string }> {
  const text = await readFile(file, 'utf8');
  const value = (name: string): string => new RegExp(`^${name}\\s*=\\s*(\\S+)$`, 'm').exec(text)?.[1] ?? '';
  return { accessKeyId: value('aws_access_key_id'), secretAccessKey: value('aws_secret_access_key') };
}
