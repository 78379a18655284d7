import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { type Account, isWhole, killWhileRemembering } from '../../tests/support/memory-kills.ts';

const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/** `npm run bench -- faults memory [--kills 100] [--pace 0] [--keep]`; `--keep` writes the account into docs/benchmarks.md. */
export async function run(args: string[]): Promise<void> {
  const option = (name: string, fallback: number): number => {
    const at = args.indexOf(name);
    return at < 0 ? fallback : Number(args[at + 1]);
  };
  const account = await killWhileRemembering({
    kills: option('--kills', 100),
    paceMs: option('--pace', 0),
    onKill: (kill, acknowledged) => {
      if (kill % 10 === 0) process.stdout.write(`${kill} kills, ${acknowledged} events acknowledged\n`);
    },
  });
  process.stdout.write(`${JSON.stringify(account, null, 2)}\n`);
  if (args.includes('--keep')) {
    await writeFile(page, withSection(await readFile(page, 'utf8'), 'memory-faults', table(account)));
  }
  if (!isWhole(account)) process.exitCode = 1;
}

function table(account: Account): string {
  const n = (value: number): string => value.toLocaleString('en');
  const { lostEvents, doubledEvents, lostRecords, doubledRecords, unextracted, failedJobs } = account;
  return [
    `Taken ${new Date().toISOString().slice(0, 10)}: ${account.kills} kills with SIGKILL, each within a second of the first write after a start.`,
    '',
    '| what | acknowledged | there at the end | lost | doubled |',
    '|---|---|---|---|---|',
    `| events | ${n(account.acknowledgedEvents)} | ${n(account.events)} | ${lostEvents.length} | ${doubledEvents.length} |`,
    `| records that a client wrote | ${n(account.acknowledgedRecords)} | | ${lostRecords.length} | ${doubledRecords.length} of either kind |`,
    `| records extracted, one for each event | | ${n(account.extractedRecords)} | ${unextracted.length} | |`,
    `| extraction jobs given up | | ${failedJobs.length} | | |`,
  ].join('\n');
}
