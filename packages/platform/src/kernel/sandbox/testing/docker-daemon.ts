import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identify, isAlive, type ProcessIdentity, runCommand, signalProcess } from '../../processes/index.ts';
import { DockerApi } from '../docker/docker-api.ts';
import { until } from './until.ts';

/** A Docker daemon of the test's own: nothing of it is outside one temporary directory, and it touches no packet rules of the host. */
export class DockerDaemon {
  readonly dir: string;
  readonly socketPath: string;
  #child: ChildProcess | undefined;

  private constructor(dir: string) {
    this.dir = dir;
    this.socketPath = join(dir, 'docker.sock');
  }

  static async start(): Promise<DockerDaemon> {
    const daemon = new DockerDaemon(await mkdtemp(join(tmpdir(), 'dockerd-')));
    await daemon.#start(true);
    return daemon;
  }

  /** Kills the daemon as it stands and starts it again; it takes its containers over only when it is told to. */
  async crash({ liveRestore }: { liveRestore: boolean }): Promise<void> {
    this.#child?.kill('SIGKILL');
    if (this.#child && this.#child.exitCode === null) await once(this.#child, 'exit');
    await rm(join(this.dir, 'pid'), { force: true });
    // Its containerd is killed with it, and nobody may have buried that yet: a number in use would be taken for a live one.
    const file = join(this.dir, 'exec/containerd/containerd.pid');
    const pid = Number(await readFile(file, 'utf8').catch(() => ''));
    await until(async () => (await identify(pid)) === undefined);
    await rm(file, { force: true });
    await this.#start(liveRestore);
  }

  /** Ends it with all that it started, and removes its directory. */
  async stop(): Promise<void> {
    const others = await this.#processes();
    const ended = this.#child ? once(this.#child, 'exit') : undefined;
    this.#child?.kill('SIGTERM');
    await ended;
    for (const process of others) await signalProcess(process, 'SIGKILL');
    for (const process of others) await until(async () => !(await isAlive(process)));
    const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '');
    for (const place of mounts.filter((mount) => mount.startsWith(`${this.dir}/`)).reverse())
      await runCommand(['umount', '--lazy', place]);
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  async #start(liveRestore: boolean): Promise<void> {
    const log = await open(join(this.dir, 'log'), 'a');
    const places = { 'data-root': 'data', 'exec-root': 'exec', pidfile: 'pid' };
    this.#child = spawn(
      'dockerd',
      [
        ...Object.entries(places).flatMap(([flag, name]) => [`--${flag}`, join(this.dir, name)]),
        '--host',
        `unix://${this.socketPath}`,
        ...['bridge=none', 'iptables=false', 'ip6tables=false', 'ip-forward=false', 'userland-proxy=false'].map(
          (flag) => `--${flag}`,
        ),
        ...['--group', 'root', `--live-restore=${liveRestore}`],
      ],
      { stdio: ['ignore', log.fd, log.fd] },
    );
    await log.close();
    const child = this.#child;
    const api = new DockerApi(this.socketPath);
    try {
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`dockerd ended: ${await readFile(join(this.dir, 'log'), 'utf8')}`);
        return api.json('GET', '/_ping').then(
          () => true,
          () => false,
        );
      });
    } finally {
      api.close();
    }
  }

  /** What the daemon has started: containerd and a shim for each container, which all name its directory. */
  async #processes(): Promise<ProcessIdentity[]> {
    const found: ProcessIdentity[] = [];
    for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
      const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
      if (!/^\S*containerd/.test(command) || !command.includes(this.dir)) continue;
      const process = await identify(Number(name));
      if (process) found.push(process);
    }
    return found;
  }
}
