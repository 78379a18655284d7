import { readdir, readFile } from 'node:fs/promises';

/** Processes of the host that stand for commands of sandboxes whose directories begin with `place`, by their command lines. */
export async function execHelpers(place: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(`${place}/`) && command.includes('/exec-')) found.push(command.replaceAll('\0', ' '));
  }
  return found;
}
