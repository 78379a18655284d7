import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { localDirectory } from '../local-directory.ts';
import { PROTOCOL } from '../tree-lines.ts';
import { FuseDevice } from './fuse-device.ts';
import { FuseFiles } from './fuse-files.ts';
import { TreeClient } from './tree-client.ts';

// The process behind one mounted prefix of an object store. It holds the contents of open files and asks the platform for everything
// else, so no credentials ever are in it. A platform that is killed leaves it, and the next one on the same data takes it up; without
// any it ends by itself.

/** A platform that was away for longer finds the mount gone and makes it anew. */
const MAX_ALONE_MS = 10 * 60_000;
const SETTLE_MS = 30_000;

const [id = '', source = '', socket = '', path = '', directories = '', roomBytes = ''] = process.argv.slice(2);
/** Of this process alone: another for the same place, before it or after it, has files of the same names. */
const directory = localDirectory(directories, process.pid);

function end(): void {
  rmSync(directory, { recursive: true, force: true });
  // exit(3) would wait for the thread that waits for the kernel.
  process.kill(process.pid, 'SIGKILL');
}

/** Nobody is left who would unmount it. */
function abandon(): void {
  spawnSync('umount', ['-l', path], { stdio: 'ignore', timeout: 5000, killSignal: 'SIGKILL' });
  end();
}

async function serve(): Promise<void> {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  let failure: string | undefined;
  let device: FuseDevice | undefined;
  try {
    device = FuseDevice.mount(path, id);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  let files: FuseFiles | undefined;
  const settle = async (): Promise<void> => {
    const late = setTimeout(() => end(), SETTLE_MS);
    await files?.settle();
    clearTimeout(late);
    end();
  };
  const tree = new TreeClient({
    socket,
    hello: { hello: { protocol: PROTOCOL, id, source, pid: process.pid, failure } },
    onEnd: () => void settle(),
    onAlone(ms) {
      if (ms >= MAX_ALONE_MS || device === undefined || !existsSync(directory)) abandon();
    },
  });
  process.on('uncaughtException', (error) => {
    tree.note(`the file system of ${id} ends: ${error.stack}`);
    setImmediate(() => end());
  });
  if (!device) return;
  const mounted = device;
  const served = new FuseFiles({
    tree,
    answer: (message) => mounted.answer(message),
    directory,
    roomBytes: Number(roomBytes),
    now: Date.now,
    note: (text) => tree.note(text),
  });
  files = served;
  await mounted.serve((request) => served.take(request));
  await settle();
}

await serve();
