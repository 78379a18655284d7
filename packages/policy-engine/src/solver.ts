import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** An SMT solver on this machine: the program cvc5, or Python with the package of that name. */
export interface Solver {
  name: 'cvc5' | 'python3 with cvc5';
  command: string;
  args: string[];
}

export const solverInstall = 'apt-get install cvc5   # or: pip install cvc5';

/** The parser of the package, around which this stands in for the program: it runs a script and says what the program would. */
const aroundPackage = `
import sys, cvc5
from cvc5 import InputParser, SymbolManager
solver = cvc5.Solver()
solver.setOption("tlimit", sys.argv[1])
symbols = SymbolManager(solver.getTermManager() if hasattr(solver, "getTermManager") else solver)
parser = InputParser(solver, symbols)
parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, sys.stdin.read(), "stdin")
while True:
    command = parser.nextCommand()
    if command.isNull():
        break
    sys.stdout.write(command.invoke(solver, symbols))
`;

/** The solver found by itself; none where there is none. */
export async function findSolver(): Promise<Solver | undefined> {
  const program = onPath('cvc5');
  if (program) return { name: 'cvc5', command: program, args: ['--lang', 'smt'] };
  const python = onPath('python3');
  if (!python) return undefined;
  const solver: Solver = { name: 'python3 with cvc5', command: python, args: ['-c', aroundPackage] };
  const answer = await solve(solver, '(set-logic ALL)\n', 10_000).catch(() => 'none');
  return answer === 'unknown' || answer === 'none' ? undefined : solver;
}

function onPath(name: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (!folder) continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

const mostOutput = 4 * 1024 * 1024;

/** Runs a script and asks whether it can be satisfied: `unsat`, the model where it is satisfiable, or `unknown`, also once the signal aborts. */
export function solve(
  solver: Solver,
  script: string,
  milliseconds: number,
  signal?: AbortSignal,
): Promise<'unsat' | 'unknown' | { model: string }> {
  const limit = Math.max(1, Math.floor(milliseconds));
  const args = solver.name === 'cvc5' ? [...solver.args, `--tlimit=${limit}`] : [...solver.args, String(limit)];
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      resolve('unknown');
      return;
    }
    const child = spawn(solver.command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
    const leave = (): void => void child.kill('SIGKILL');
    signal?.addEventListener('abort', leave, { once: true });
    const ended = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    };
    const timer = setTimeout(leave, limit + 1_000);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > mostOutput) leave();
    });
    child.once('error', (error) => {
      ended();
      reject(error);
    });
    child.once('close', () => {
      ended();
      const [verdict = '', ...rest] = output.trimStart().split('\n');
      if (verdict === 'unsat') resolve('unsat');
      else if (verdict === 'sat' && rest.join('').trim().startsWith('(')) resolve({ model: rest.join('\n') });
      else resolve('unknown');
    });
    // A solver that ends before it has read everything says so by its answer.
    child.stdin.once('error', () => undefined);
    child.stdin.end(`${script}\n(check-sat)\n(get-model)\n`);
  });
}
