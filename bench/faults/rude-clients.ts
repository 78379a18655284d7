import { randomInt } from 'node:crypto';
import { beRude } from '../../tests/support/rude/rude-hours.ts';
import type { RoundsAccount } from '../../tests/support/rude/rude-rounds.ts';

/**
 * `npm run bench -- faults rude-clients [--minutes 60] [--seed N] [--cores N]`: connections cut anywhere in any request, ended in any rude way. 0 exits
 * wanted, and every route cut at every kind of place in every rude way (which takes some minutes).
 */
export async function run(args: string[]): Promise<void> {
  const option = (name: string, fallback: number): number => {
    const at = args.indexOf(name);
    return at < 0 ? fallback : Number(args[at + 1]);
  };
  const seed = option('--seed', randomInt(2 ** 31));
  const forMs = option('--minutes', 60) * 60_000;
  let until: number | undefined;
  process.stdout.write(`seed ${seed}\n`);
  let told = performance.now();
  const account = await beRude({
    seed,
    ...(args.includes('--cores') ? { cores: option('--cores', 1) } : {}),
    goOn: () => {
      // The platform has started by now.
      until ??= performance.now() + forMs;
      return performance.now() < until;
    },
    onRound: (now) => {
      if (performance.now() - told < 60_000) return;
      told = performance.now();
      process.stdout.write(`${summary(now)}\n`);
    },
  });
  process.stdout.write(
    `${summary(account)}\nways  ${JSON.stringify(account.ways)}\nspans ${account.spans}, tool calls ${account.calls}, ${account.defects} failures of the platform's own, most CPU for a round ${account.mostCpuSeconds.toFixed(2)} s\nstart ${JSON.stringify(account.start)}\nend   ${JSON.stringify(account.end)}\n`,
  );
  for (const { message, cut, ending } of account.suspects)
    process.stdout.write(`  ${message}: ${ending} at the ${cut}\n`);
  const { all, made } = account.combinations;
  if (made < all) process.stdout.write(`${all - made} combinations were not made: give it more minutes\n`);
  if (account.exits + account.unhandled + account.defects + all - made > 0) process.exitCode = 1;
}

function summary({ attempts, held, exits, unhandled, combinations: { all, made } }: RoundsAccount): string {
  return `${attempts} attempts (${made} of ${all} combinations of route, cut and ending), ${held} held, ${exits} exits, ${unhandled} errors that nobody caught`;
}
