import { spawn } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BUNDLE = 'etc/ssl/certs/ca-certificates.crt';

/**
 * Makes an image of Debian 12 without any image registry, by debootstrap, under that name. Needs root on Linux; DEBIAN_MIRROR names another
 * mirror than deb.debian.org. It trusts whom this machine trusts. Rejects with the failure in a sentence.
 */
export async function debootstrapBase(name) {
  const dir = await mkdtemp(join(tmpdir(), 'agentplatform-base-'));
  try {
    const mirror = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
    const options = ['--variant=minbase', '--include=ca-certificates'];
    await run('debootstrap', [...options, 'bookworm', dir, mirror]);
    await copyFile(`/${BUNDLE}`, join(dir, BUNDLE)).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
    const tar = spawn('tar', ['--one-file-system', '-C', dir, '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await Promise.all([ended(tar, 'tar'), run('docker', ['import', '-', name], tar.stdout)]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Runs a program; with `input` as what it reads. */
function run(command, args, input) {
  const child = spawn(command, args, { stdio: [input ? 'pipe' : 'ignore', 'inherit', 'inherit'] });
  // Whoever ends early says why itself.
  input?.on('error', () => undefined);
  if (input) input.pipe(child.stdin).on('error', () => undefined);
  return ended(child, command);
}

function ended(child, command) {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      reject(error.code === 'ENOENT' ? new Error(`There is no ${command} here: apt-get install ${command}`) : error);
    });
    child.once('close', (status) =>
      status === 0 ? resolve() : reject(new Error(`${command} ended with status ${status} (see above).`)),
    );
  });
}
