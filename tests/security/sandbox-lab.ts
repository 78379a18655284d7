import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import type { OciProviderOptions } from '../../packages/platform/src/kernel/sandbox/oci-engine.ts';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci-provider.ts';
import type { PreparedImage, Sandbox, SandboxSpec } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { busyboxImage } from '../../packages/platform/src/kernel/sandbox/testing/rootfs.ts';
import { runIn } from '../../packages/platform/src/kernel/sandbox/testing/sandbox-contract.ts';
import { smallSpec } from '../../packages/platform/src/kernel/sandbox/testing/small-spec.ts';

const execute = promisify(execFile);

/** A provider of its own, an image with a shell and perl (whose `syscall` reaches every call of the kernel), and the attacks' tools. */
export class SandboxLab {
  readonly dir: string;
  readonly image: PreparedImage;
  readonly provider: OciProvider;
  #serial = 0;

  private constructor(dir: string, image: PreparedImage, provider: OciProvider) {
    this.dir = dir;
    this.image = image;
    this.provider = provider;
  }

  static async open(options: Partial<OciProviderOptions> = {}): Promise<SandboxLab> {
    const dir = await mkdtemp(join(tmpdir(), 'sandbox-lab-'));
    const image = await busyboxImage(dir);
    await addProgram(image.rootfs, '/usr/bin/perl');
    const provider = new OciProvider({
      dataDir: join(dir, 'data'),
      clock: systemClock,
      log: pino({ level: 'silent' }),
      ...options,
    });
    return new SandboxLab(dir, image, provider);
  }

  /** A sandbox that only sleeps; attacks are executed in it. */
  create(change: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return this.provider.create(
      smallSpec(this.image, `lab${this.#serial++}`, { command: ['/bin/sleep', '600'], ...change }),
    );
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
