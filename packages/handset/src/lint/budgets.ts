import type { Output } from '../build/output.ts';
import { bytes } from '../cli/terminal.ts';
import { type Problem, problem } from '../problem.ts';
import type { Budgets } from '../project/settings.ts';

/** Hold the outputs of a production build against the weight budgets. */
export function checkBudgets(outputs: ReadonlyMap<string, Output>, budgets: Budgets): Problem[] {
  const problems: Problem[] = [];
  const weights = [...outputs].map(([name, output]) => ({ name, size: output.read().length, source: output.source }));
  const over = (file: string, what: string, size: number, setting: keyof Budgets): void => {
    if (size <= budgets[setting]) return;
    const message = `${what} ${bytes(size)}; the budget "${setting}" is ${bytes(budgets[setting])}.`;
    problems.push(problem('lint-weight', { file, message }));
  };
  const sum = (wanted: (name: string) => boolean): number =>
    weights.reduce((total, { name, size }) => (wanted(name) ? total + size : total), 0);

  for (const { name, size, source } of weights) if (isImage(name)) over(source, 'The image weighs', size, 'image');
  over(
    'public/index.html',
    'The page, its styles and its images weigh',
    sum((n) => isImage(n) || /\.(html|css)$/.test(n)),
    'page',
  );
  over(
    'public/javascripts',
    'The scripts weigh',
    sum((n) => n.startsWith('javascripts/')),
    'script',
  );
  over(
    'public',
    'All files together weigh',
    sum(() => true),
    'package',
  );
  return problems;
}

function isImage(name: string): boolean {
  return /\.(png|gif|jpe?g|svg|webp)$/i.test(name);
}
