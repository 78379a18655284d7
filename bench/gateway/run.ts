import { thisMachine } from '../support/machine.ts';
import { openContest } from './contestants.ts';
import { type GatewayResults, keepResults, table } from './results.ts';
import { takeTurns } from './throughput.ts';

/**
 * `npm run bench -- gateway [--quick] [--keep]`: a tool of a small API, called through a gateway by signature and by token, through FastMCP, and
 * the API by itself, taking turns. The load comes from this process, on the same machine. Prints a table; `--keep` writes
 * bench/results/gateway.json and docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const machine = thisMachine({});
  const { contestants, end } = await openContest();
  try {
    const measured = await takeTurns(contestants, args.includes('--quick') ? 2 : 10);
    const results: GatewayResults = { at: new Date().toISOString(), machine, measured };
    process.stdout.write(`${table(results)}\n`);
    if (args.includes('--keep')) await keepResults(results);
  } finally {
    await end();
  }
}
