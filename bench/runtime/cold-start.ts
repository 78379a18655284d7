import { glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runChild } from '../support/child.ts';
import { Connection } from '../support/connection.ts';
import { wireOf } from '../support/signed-requests.ts';
import { median } from '../support/statistics.ts';
import type { BenchPlatform, LiveSession } from './bench-platform.ts';
import { timeNewSession } from './new-session.ts';

export interface ColdStart {
  /** Milliseconds, medians: a new session until the first byte of its answer, and the same by `runc run`. */
  platform: number;
  runtime: number;
}

const PEER_PORT = 8090;
/** What the platform prepares for the next start is made while nothing is measured. */
const SETTLE_MS = 500;

/** runc hands its own output on to the sandbox, so it must not be a pipe that somebody waits for. */
const DETACHED = 'log=$1; shift; exec runc "$@" >"$log" 2>&1 </dev/null';

/** A new session and `runc run` of the same bundle, in turns, each until the first byte of the agent's first answer. */
export async function coldStart(
  bench: BenchPlatform,
  live: LiveSession,
  dir: string,
  rounds: number,
): Promise<ColdStart> {
  const peer = await RuntimePeer.prepare(bench.platform.dataDir, live, dir);
  const platform: number[] = [];
  const runtime: number[] = [];
  try {
    for (let round = -1; round < rounds; round += 1) {
      const own = await timeNewSession(bench);
      await sleep(SETTLE_MS);
      const theirs = await peer.start();
      if (round < 0) continue;
      platform.push(own);
      runtime.push(theirs);
    }
  } finally {
    await peer.remove();
  }
  return { platform: median(platform), runtime: median(runtime) };
}

/** The root file system with the agent's code; in a data directory as new as this there is one. */
async function unpackedImage(images: string): Promise<string> {
  for await (const file of glob('**/var/task/index.mjs', { cwd: images })) return join(images, dirname(file), '../..');
  throw new Error(`no unpacked image of the agent below ${images}`);
}

/** What the peer reads of a bundle's configuration. */
interface BundleConfig {
  process: { env: string[] };
  root: { path: string };
  mounts: { destination: string }[];
  linux: { cgroupsPath: string };
}

/**
 * The runtime's own command on the bundle of a live session: the same config.json, image, limits, seccomp profile and (joined)
 * namespaces. Files and network are there before the clock runs, which the platform has to make in its time.
 */
class RuntimePeer {
  readonly #dir: string;
  readonly #address: string;
  #count = 0;

  private constructor(dir: string, address: string) {
    this.#dir = dir;
    this.#address = address;
  }

  static async prepare(dataDir: string, { sandboxId, address }: LiveSession, dir: string): Promise<RuntimePeer> {
    const bundle = join(dataDir, 'sandboxes', sandboxId);
    const config: BundleConfig = JSON.parse(await readFile(join(bundle, 'config.json'), 'utf8'));
    const image = await unpackedImage(join(dataDir, 'images'));
    for (const part of ['upper', 'work', 'root', 'state'])
      await mkdir(join(dir, part), { recursive: true, mode: 0o755 });
    const options = `lowerdir=${image},upperdir=${join(dir, 'upper')},workdir=${join(dir, 'work')}`;
    await runChild('mount', ['-t', 'overlay', 'overlay', '-o', options, join(dir, 'root')], 10_000);
    // Where the runtime mounts something; inside it is not root and may not make them.
    for (const { destination } of config.mounts)
      if (!destination.startsWith('/dev/') && !destination.startsWith('/sys/'))
        await mkdir(join(dir, 'root', destination), { recursive: true });
    config.root.path = join(dir, 'root');
    config.linux.cgroupsPath += '-bench';
    // The live session has the usual port of the shared network.
    config.process.env.push(`BENCH_PORT=${PEER_PORT}`);
    await writeFile(join(dir, 'config.json'), JSON.stringify(config));
    return new RuntimePeer(dir, address.host);
  }

  /** Milliseconds from the command to the first byte of the agent's answer. */
  async start(): Promise<number> {
    this.#count += 1;
    const id = `bench-${process.pid}-${this.#count}`;
    const root = ['--root', join(this.#dir, 'state')];
    const request = wireOf('/invocations', { host: 'agent', 'content-type': 'application/octet-stream' }, 'x');
    try {
      const start = ['run', '--detach', '--bundle', this.#dir];
      const begin = performance.now();
      const run = runChild('sh', ['-c', DETACHED, 'sh', join(this.#dir, 'log'), ...root, ...start, id], 30_000);
      const [, firstByteAt] = await Promise.all([run, this.#firstAnswer(request)]);
      return firstByteAt - begin;
    } finally {
      await runChild('runc', [...root, 'delete', '--force', id], 30_000);
    }
  }

  async #firstAnswer(request: Buffer): Promise<number> {
    for (const deadline = performance.now() + 30_000; performance.now() < deadline; await sleep(1)) {
      const connection = await Connection.open(this.#address, PEER_PORT).catch(() => undefined);
      if (!connection) continue;
      try {
        return (await connection.send(request)).firstByteAt;
      } finally {
        connection.close();
      }
    }
    throw new Error('the agent started by runc did not answer within 30 s');
  }

  async remove(): Promise<void> {
    await runChild('umount', [join(this.#dir, 'root')], 10_000).catch(() => undefined);
    await rm(this.#dir, { recursive: true, force: true });
  }
}
