import { spawnSync } from 'node:child_process';
import { findSolver, type Solver } from '../src/index.ts';

/** The solver; on a bare Debian machine it is installed first, loudly. A test never passes for lack of one. */
export async function requireSolver(): Promise<Solver> {
  const found = await findSolver();
  if (found) return found;
  process.stderr.write('\npolicy tests: the solver is missing; installing it with apt-get\n');
  const apt = (args: readonly string[]) =>
    spawnSync('apt-get', args, { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
  apt(['update', '-q']);
  apt(['install', '-y', '-q', '--no-install-recommends', 'cvc5']);
  const solver = await findSolver();
  if (!solver) throw new Error('The solver is missing and could not be installed: run `apt-get install cvc5` as root.');
  return solver;
}
