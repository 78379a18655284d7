import { readdir, readFile, realpath } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import { runCommand } from '../../processes/index.ts';
import { listGroups, readCgroupLayout } from '../host/cgroups.ts';
import { instancePlaces } from '../host/instance.ts';

/** Everything on the machine that carries the names of the platform at `dataDir`, which may be gone; makes nothing. */
export async function traces(dataDir: string) {
  const real = await realpath(dataDir).catch(() => dataDir);
  const { prefix, sandboxes, leases, runtimeRoot } = instancePlaces(real, '/run/agentplatform');
  const lines = async (...argv: [string, ...string[]]): Promise<string[]> =>
    (await runCommand(argv)).stdout.split('\n').filter((line) => line !== '');
  const names = (dir: string): Promise<string[]> => readdir(dir).catch(() => []);
  const processes: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(prefix) && pid !== String(process.pid))
      processes.push(command.replaceAll('\0', ' ').slice(0, 80));
  }
  const table = await lines('nft', 'list', 'table', 'inet', prefix);
  return {
    processes,
    groups: await listGroups(await readCgroupLayout(), `/${prefix}`),
    directories: await names(sandboxes),
    runtime: await names(runtimeRoot),
    leases: (await names(join(leases, prefix))).filter((name) => isIPv4(name)),
    elements: table.filter((line) => line.includes('"veth')),
    mounts: (await readFile('/proc/self/mountinfo', 'utf8'))
      .split('\n')
      .filter((line) => line.includes(prefix) || line.includes(dataDir)),
    loops: (await lines('losetup', '--list', '--noheadings', '--output', 'BACK-FILE')).filter((file) =>
      file.includes(dataDir),
    ),
  };
}
