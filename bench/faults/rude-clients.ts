import { randomInt } from 'node:crypto';
import { ENGINES, type Engine } from '../../tests/support/engines.ts';
import { beRude } from '../../tests/support/rude/rude-hours.ts';
import type { RoundsAccount } from '../../tests/support/rude/rude-rounds.ts';

/**
 * `npm run bench -- faults rude-clients [--minutes 60] [--seed N] [--cores N] [--sandbox oci|gvisor|docker]`: connections cut anywhere in any request, ended in any rude way. 0 exits
 * wanted, and every route cut at every kind of place in every rude way (which takes some minutes). Without `--sandbox` its
 * sandboxes are bare processes, which cost the least.
 */
export async function run(args: string[]): Promise<void> {
  const option = (name: string, fallback: number): number => {
    const at = args.indexOf(name);
    return at < 0 ? fallback : Number(args[at + 1]);
  };
  const seed = option('--seed', randomInt(2 ** 31));
  const forMs = option('--minutes', 60) * 60_000;
  let until: number | undefined;
  const engine = await openEngine(args);
  process.stdout.write(`seed ${seed}\n`);
  let told = performance.now();
  const account = await beRude({
    seed,
    ...(engine && { sandbox: engine.args }),
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
  await engine?.stop();
  process.stdout.write(
    `${summary(account)}\nways  ${JSON.stringify(account.ways)}\nspans ${account.spans}, tool calls ${account.calls}, ${account.defects} failures of the platform's own, most CPU for a round ${account.mostCpuSeconds.toFixed(2)} s\nstart ${JSON.stringify(account.start)}\nend   ${JSON.stringify(account.end)}\n`,
  );
  for (const { message, cut, ending } of account.suspects)
    process.stdout.write(`  ${message}: ${ending} at the ${cut}\n`);
  const { all, made } = account.combinations;
  if (made < all) process.stdout.write(`${all - made} combinations were not made: give it more minutes\n`);
  if (account.exits + account.unhandled + account.defects + all - made > 0) process.exitCode = 1;
}

/** What `--sandbox` names. Throws for what it does not know, and what this machine lacks. */
async function openEngine(args: string[]): Promise<Engine | undefined> {
  const at = args.indexOf('--sandbox');
  if (at < 0) return undefined;
  const wanted = args[at + 1] === 'gvisor' ? 'oci with gVisor' : args[at + 1];
  const kind = ENGINES.find(({ name }) => name === wanted);
  if (!kind) throw new Error('--sandbox is oci, gvisor or docker');
  if (kind.lacking !== undefined) throw new Error(kind.lacking);
  return kind.open();
}

function summary({ attempts, held, exits, unhandled, combinations: { all, made } }: RoundsAccount): string {
  return `${attempts} attempts (${made} of ${all} combinations of route, cut and ending), ${held} held, ${exits} exits, ${unhandled} errors that nobody caught`;
}
