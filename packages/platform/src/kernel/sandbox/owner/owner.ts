import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  HELPER_ENV,
  identify,
  type ProcessIdentity,
  type RunCommand,
  startFailureReason,
} from '../../processes/index.ts';
import { type CniAddress, parseCniResult } from '../network/cni.ts';
import { SandboxError } from '../sandbox.ts';
import { type SyscallNumbers, syscallNumbers } from './syscall-numbers.ts';

const SCRIPT = fileURLToPath(new URL('./owner.pl', import.meta.url));
const READY_TIMEOUT_MS = 15_000;
const START_TIMEOUT_MS = 60_000;

/** Which ids of the host those inside are. */
export interface HostIds {
  /** That of root inside. No other sandbox has it, nor any of the 65,535 above it. */
  first: number;
  /** Whether the ids inside are all of that range; else all but root are the same outside, where they are every sandbox's. */
  own: boolean;
}

export interface OwnerOptions {
  slot: string;
  arch: NodeJS.Architecture;
  ids: HostIds;
  cniDir: string;
  cniConfig: string;
}

export interface MountRequest {
  dir: string;
  image: string;
  diskMount: string;
  rootMount: string;
  diskBytes: number;
  /** Where a formatted image of that size is kept for copying; undefined for a disk in memory. */
  diskTemplate: string | undefined;
  /** Whether root inside is the one of the owner's user namespace: what belongs to the image's root is then his. Else it is the host's. */
  mapRoot: boolean;
  uid: number;
  gid: number;
  workingDir: string;
  ownWorkingDir: boolean;
  files: { path: string; text: string }[];
  /** `source` is what of the host is to be shown with owners out of the sandbox's range, in `places`, by its number in this list. */
  mountTargets: { kind: 'dir' | 'file'; path: string; source?: string }[];
  /** What the first process will be asked to run, and the directories in which it is looked for when it has none. */
  command: { file: string; path: string[] };
  /** A directory to show it in, inside the owner's mount namespace, and the id of the host that root inside is there; undefined when there is nothing. */
  places?: { dir: string; rootId: number } | undefined;
}

export interface StartRequest {
  logBytes: number;
  /** `lease-file.ts`. */
  leaseFile: string;
  runtime: string[];
}

export function ownerSupports(arch: NodeJS.Architecture): boolean {
  return syscallNumbers[arch] !== undefined;
}

/** The server's end of one `owner.pl`: a sandbox's namespaces and address, ready to be started in. */
export class Owner {
  readonly slot: string;
  readonly ids: HostIds;
  readonly identity: ProcessIdentity;
  readonly address: CniAddress;
  readonly userNamespace: string;
  readonly networkNamespace: string;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  #child: OwnerProcess;
  #lines: LineReader;

  private constructor(
    options: OwnerOptions,
    child: OwnerProcess,
    lines: LineReader,
    ended: Promise<void>,
    identity: ProcessIdentity,
    ready: string[],
  ) {
    const [userns, netns, result = ''] = ready;
    this.slot = options.slot;
    this.ids = options.ids;
    this.identity = identity;
    this.address = parseCniResult(decodeURIComponent(result));
    this.userNamespace = `/proc/${identity.pid}/fd/${userns}`;
    this.networkNamespace = `/proc/${identity.pid}/fd/${netns}`;
    this.ended = ended;
    this.#child = child;
    this.#lines = lines;
  }

  /** Starts an owner and waits for its namespaces and address. Rejects with SandboxError `failed`; nothing is left then but perhaps a lease. */
  static async spawn(options: OwnerOptions): Promise<Owner> {
    const numbers = syscallNumbers[options.arch];
    if (!numbers)
      throw new SandboxError(
        'unavailable',
        `Sandboxes with namespaces are not known on the architecture ${options.arch}.`,
      );
    const child = spawn(
      'unshare',
      [
        '--mount',
        '--propagation',
        'slave',
        'perl',
        SCRIPT,
        ...inOrder(numbers),
        String(options.ids.first),
        options.ids.own ? '1' : '',
        `${options.cniDir}/ptp`,
        options.cniConfig,
      ],
      {
        // In a session of its own: Ctrl-C at the server's terminal is for the server.
        detached: true,
        stdio: ['pipe', 'pipe', 'ignore'],
        cwd: '/',
        env: {
          ...HELPER_ENV,
          CNI_COMMAND: 'ADD',
          CNI_CONTAINERID: options.slot,
          CNI_IFNAME: 'eth0',
          CNI_PATH: options.cniDir,
        },
      },
    );
    const ended = new Promise<void>((resolve) => {
      child.once('error', () => resolve());
      child.once('exit', () => resolve());
    });
    child.stdin.on('error', () => undefined);
    const lines = new LineReader(child);
    try {
      const ready = await lines.expect('ready', READY_TIMEOUT_MS);
      const identity = child.pid === undefined ? undefined : await identify(child.pid);
      if (!identity) throw new SandboxError('failed', 'The owner of the sandbox ended early.');
      return new Owner(options, child, lines, ended, identity, ready);
    } catch (error) {
      child.kill('SIGKILL');
      lines.close();
      throw error;
    }
  }

  /** Makes the sandbox's file system: its own bounded layer over the image. Rejects with SandboxError `failed`. */
  async mount(request: MountRequest): Promise<void> {
    this.#tell(mountFields(request));
    await this.#lines.expect('mounted', START_TIMEOUT_MS);
  }

  /** Starts the sandbox in its mounted file system; resolves to the host's id of its first process. Rejects with SandboxError `failed`. */
  async start({ logBytes, leaseFile, runtime }: StartRequest): Promise<number> {
    this.#tell(['start', String(logBytes), leaseFile, ...runtime]);
    const [pid] = await this.#lines.expect('started', START_TIMEOUT_MS);
    this.discard();
    // From here on it must not keep the server's process from ending.
    this.#child.unref();
    return Number(pid);
  }

  #tell(fields: string[]): void {
    this.#child.stdin.write(line(fields));
  }

  /** Says no more to it. One that was not started ends by itself, and its namespaces with it. */
  discard(): void {
    this.#child.stdin.destroy();
    this.#lines.close();
  }
}

/**
 * Makes only the file system of `request`, in the server's own mount namespace, where it stays until it is unmounted: for containers
 * that somebody else starts. Rejects with SandboxError `failed`.
 */
export async function makeRoot(request: MountRequest, run: RunCommand): Promise<void> {
  const numbers = syscallNumbers[process.arch];
  const { stdout } = await run(['perl', SCRIPT, ...(numbers ? inOrder(numbers) : []), '0', '', '', ''], {
    // Its input ends where the request to start would come, and so does it.
    input: line(mountFields(request)),
    timeoutMs: START_TIMEOUT_MS,
  });
  const said = stdout.trim().split('\n').at(-1) ?? '';
  if (said !== 'mounted') throw refused(said.replace(/^\w+ /, ''));
}

function inOrder({ prctl, unshare, mount, ptrace, wait4 }: SyscallNumbers): string[] {
  return [prctl, unshare, mount, ptrace, wait4].map(String);
}

function mountFields(request: MountRequest): string[] {
  return [
    'mount',
    request.dir,
    request.image,
    request.diskMount,
    request.rootMount,
    String(request.diskBytes),
    request.diskTemplate ?? '',
    request.mapRoot ? '1' : '',
    String(request.uid),
    String(request.gid),
    request.workingDir,
    request.ownWorkingDir ? '1' : '',
    request.files.map((file) => `${encode(file.path)} ${encode(file.text)}`).join('\n'),
    request.mountTargets.map(({ kind, path, source = '' }) => `${kind} ${encode(path)} ${encode(source)}`).join('\n'),
    request.command.file,
    request.command.path.join('\n'),
    request.places?.dir ?? '',
    String(request.places?.rootId ?? ''),
  ];
}

function line(fields: string[]): string {
  return `${fields.map(encode).join(' ')}\n`;
}

function refused(encoded: string): SandboxError {
  const why = explain(decodeURIComponent(encoded));
  // The owner tells a system error in its words alone.
  const full = /no space left on device|disk quota exceeded/i.test(why);
  const cause = full ? Object.assign(new Error(why), { code: 'ENOSPC' }) : undefined;
  return new SandboxError(startFailureReason(why), `The sandbox could not be started: ${why}`, { cause });
}

type OwnerProcess = ChildProcessByStdio<Writable, Readable, null>;

class LineReader {
  #child: OwnerProcess;
  #interface: Interface;
  #ended: Promise<string>;

  constructor(child: OwnerProcess) {
    this.#child = child;
    this.#interface = createInterface({ input: child.stdout });
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(`it could not be started: ${error.message}`));
      this.#interface.once('error', (error) => resolve(`it could not be heard: ${error.message}`));
      this.#interface.once('close', () => resolve('it ended without a word'));
    });
  }

  async expect(word: string, timeoutMs: number): Promise<string[]> {
    const timeout = AbortSignal.timeout(timeoutMs);
    const line = once(this.#interface, 'line', { signal: timeout }).then(
      ([text]) => String(text),
      () => `error ${encode(`no answer within ${timeoutMs} ms`)}`,
    );
    const said = await Promise.race([line, this.#ended.then((why) => `error ${encode(why)}`)]);
    const [first, ...fields] = said.split(' ');
    if (first === word) return fields;
    throw refused(fields.join(' '));
  }

  close(): void {
    this.#interface.close();
    this.#child.stdout.destroy();
  }
}

/** The runtime's own sentence out of its log line, if it is one. */
function explain(text: string): string {
  const quoted = /level=error msg="((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  return (quoted ? quoted.replace(/\\(.)/g, '$1') : text).trim();
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
