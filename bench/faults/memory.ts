import { isWhole, killWhileRemembering } from '../../tests/support/memory-kills.ts';

/** `npm run bench -- faults memory [--kills 100] [--pace 0]` */
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
  if (!isWhole(account)) process.exitCode = 1;
}
