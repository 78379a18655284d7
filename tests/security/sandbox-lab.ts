import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import type { PreparedImage } from '../../packages/platform/src/kernel/sandbox/host-stage.ts';
import type { OciProviderOptions } from '../../packages/platform/src/kernel/sandbox/oci/oci-engine.ts';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci/oci-provider.ts';
import type { Sandbox, SandboxProvider } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { busyboxImage } from '../../packages/platform/src/kernel/sandbox/testing/rootfs.ts';
import { runIn } from '../../packages/platform/src/kernel/sandbox/testing/sandbox-contract.ts';
import { type SpecChange, smallSpec } from '../../packages/platform/src/kernel/sandbox/testing/small-spec.ts';
import { testStage } from '../../packages/platform/src/kernel/sandbox/testing/test-stage.ts';

const execute = promisify(execFile);

/** What both providers that isolate can be given. */
type LabOptions = Partial<Pick<OciProviderOptions, 'nft' | 'nameserver' | 'run' | 'poolSize' | 'sandboxEndpoint'>>;
type MakeProvider = (
  options: LabOptions & Pick<OciProviderOptions, 'dataDir' | 'stage' | 'clock' | 'log'>,
) => SandboxProvider;

/** Opens a lab on the provider that is attacked. */
export type OpenLab = (options?: LabOptions) => Promise<SandboxLab>;

const oci: MakeProvider = (options) => new OciProvider(options);

/** A provider of its own, an image with a shell and perl (whose `syscall` reaches every call of the kernel), and the attacks' tools. */
export class SandboxLab {
  readonly dir: string;
  readonly image: PreparedImage;
  provider: SandboxProvider;
  readonly #make: () => SandboxProvider;
  readonly #logs: string | undefined;
  #serial = 0;

  private constructor(dir: string, image: PreparedImage, make: () => SandboxProvider, logs: string | undefined) {
    this.dir = dir;
    this.image = image;
    this.provider = make();
    this.#make = make;
    this.#logs = logs;
  }

  /** `logs`: where the provider has logs kept, when that is not in the data directory. */
  static async open(options: LabOptions = {}, make: MakeProvider = oci, logs?: string): Promise<SandboxLab> {
    const dir = await mkdtemp(join(tmpdir(), 'sandbox-lab-'));
    const image = await busyboxImage(dir);
    await addProgram(image.rootfs, '/usr/bin/perl');
    const base = { dataDir: join(dir, 'data'), stage: testStage, clock: systemClock, log: pino({ level: 'silent' }) };
    return new SandboxLab(dir, image, () => make({ ...base, ...options }), logs);
  }

  /** Leaves its sandboxes to a provider that knows of none of them, as the next server's. */
  async reopen(): Promise<void> {
    await this.provider.close();
    this.provider = this.#make();
  }

  /** A sandbox that only sleeps; attacks are executed in it. */
  create(change: SpecChange = {}): Promise<Sandbox> {
    return this.provider.create(
      smallSpec(this.image, `lab${this.#serial++}`, { command: ['/bin/sleep', '600'], ...change }),
    );
  }

  /** A directory of the host that holds the sandbox's log. */
  logPlace(sandbox: Sandbox): string {
    return this.#logs ?? join(this.dir, 'data/sandboxes', sandbox.id);
  }

  async close(): Promise<void> {
    try {
      await this.provider.sweep(new Set());
      await this.provider.close();
    } finally {
      await rm(this.dir, { recursive: true, force: true });
    }
  }
}

/** Status and both outputs of a shell script inside. */
export async function shell(sandbox: Sandbox, script: string): Promise<{ code: number; out: string }> {
  const { code, stdout, stderr } = await runIn(sandbox, ['/bin/sh', '-c', script]);
  return { code, out: stdout + stderr };
}

/** What a server at that address says first, seen from inside; empty when it cannot be reached. */
export async function reach(sandbox: Sandbox, host: string, port: number): Promise<string> {
  const { out } = await shell(sandbox, `busybox nc -w 2 ${host} ${port} </dev/null 2>/dev/null`);
  return out;
}

/** Well below what a sandbox may have of processes, with four for each. */
const AT_ONCE = 12;

/** Those of the addresses that can be reached from inside, with what they said; some tried at once, for each that is closed takes a second, but each takes processes. `question` as printf takes it. */
export async function reachAny(
  sandbox: Sandbox,
  targets: readonly [host: string, port: number][],
  question = '',
): Promise<string[]> {
  const attempts = targets.flatMap(([host, port], at) => [
    `echo "${host} ${port} $(${asking(host, port, question)})" &`,
    ...(at % AT_ONCE === AT_ONCE - 1 ? ['wait'] : []),
  ]);
  const { out } = await shell(sandbox, [...attempts, 'wait'].join('\n'));
  const lines = out.split('\n').filter((line) => line !== '');
  if (lines.length !== targets.length) throw new Error(`not every address was tried: ${out}`);
  return lines.filter((line) => !line.endsWith(' '));
}

/** A shell's command that connects, says `question` (as printf takes it) and prints the answer. */
export function asking(host: string, port: number, question: string): string {
  return `printf '${question}' | busybox nc -w 1 ${host} ${port} 2>/dev/null`;
}

/** The machine's IPv4 addresses that the world knows it by. */
export function ownAddresses(): string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => !/^(veth|apw|ap\w+-|br-|docker)/.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter((address) => address.family === 'IPv4' && !address.internal)
    .map((address) => address.address);
}

/** Each address with that port. */
export function at(addresses: string[], port: number): [host: string, port: number][] {
  return addresses.map((address) => [address, port]);
}

/** The host's number of a process of the sandbox that nobody else has. */
export async function hostPid(sandbox: Sandbox): Promise<string> {
  const marker = `${50_000 + (process.pid % 10_000)}.${randomInt(2 ** 32)}`;
  await shell(sandbox, `sleep ${marker} >/dev/null 2>&1 &`);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command === `sleep\0${marker}\0`) return pid;
  }
  throw new Error('the sandbox runs no process on this host');
}

/** The host's processes in the control group of a sandbox of provider `oci`, by number. */
export async function groupPids(lab: SandboxLab, sandbox: Sandbox): Promise<string[]> {
  const group = await groupOf(lab, sandbox);
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
    if (groups.split('\n').some((line) => line.endsWith(`:${group}`))) found.push(pid);
  }
  return found;
}

/** The limits of its memory and processes on the host, as text. */
export async function groupLimits(lab: SandboxLab, sandbox: Sandbox): Promise<string> {
  const group = await groupOf(lab, sandbox);
  const names = ['pids.max', 'memory.max', 'memory.limit_in_bytes'].map((file) => `-path "*${group}/${file}"`);
  const print = 'for f; do echo "$f $(cat "$f")"; done';
  return (await host('sh', '-c', `find /sys/fs/cgroup ${names.join(' -o ')} | sort | xargs sh -c '${print}' sh`)).out;
}

async function groupOf(lab: SandboxLab, sandbox: Sandbox): Promise<string> {
  const { cgroupParent } = instancePlaces(await realpath(join(lab.dir, 'data')), '/run/agentplatform');
  return `${cgroupParent}/${sandbox.id}`;
}

/** All namespaces of the host's processes, each once. */
export async function namespaces(pids: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const pid of pids)
    for (const kind of await readdir(`/proc/${pid}/ns`).catch(() => []))
      found.add(await readlink(`/proc/${pid}/ns/${kind}`).catch(() => ''));
  found.delete('');
  return [...found].sort();
}

/** Runs a command on the host; a status other than 0 is part of the answer. */
export async function host(file: string, ...args: string[]): Promise<{ code: number; out: string }> {
  try {
    const { stdout, stderr } = await execute(file, args, { timeout: 10_000 });
    return { code: 0, out: stdout + stderr };
  } catch (error) {
    const failed = error instanceof Error && 'code' in error && 'stdout' in error ? error : undefined;
    if (!failed || typeof failed.code !== 'number') throw error;
    return { code: failed.code, out: `${failed.stdout}` };
  }
}

/** A server that says `word` to whoever connects. */
export async function speaker(word: string, address: string): Promise<{ port: number; close(): void }> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(word);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, resolve);
  });
  const bound: AddressInfo | string | null = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('not listening');
  return { port: bound.port, close: () => server.close() };
}

async function addProgram(rootfs: string, program: string): Promise<void> {
  const { stdout } = await execute('ldd', [program]);
  const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? '');
  for (const file of [program, ...libraries]) {
    await mkdir(join(rootfs, dirname(file)), { recursive: true, mode: 0o755 });
    await copyFile(file, join(rootfs, file));
  }
}
