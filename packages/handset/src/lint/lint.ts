import { createAssembler } from '../build/assembler.ts';
import { roleOf } from '../build/roles.ts';
import { createSourceStore } from '../build/source-store.ts';
import type { Problem } from '../problem.ts';
import { compareNames } from '../project/paths.ts';
import type { Project } from '../project/project.ts';
import { checkBudgets } from './budgets.ts';
import { checkScript } from './es5.ts';
import { checkImages } from './images.ts';
import { checkPage } from './page.ts';
import { checkWidgetConfig } from './widget-config.ts';

/** Hold a project against the limits of the devices; faults that keep it from building come alone. */
export async function lintProject({ root, settings, plugins }: Project): Promise<Problem[]> {
  const assembly = await createAssembler({ root, settings, plugins, production: true }).assemble();
  if (!assembly.outputs) return [...assembly.problems];
  const outputs = assembly.outputs;
  const store = createSourceStore(root);
  store.readAll();
  const problems = [...assembly.problems];
  for (const name of [...store.names()].sort(compareNames)) {
    const isThemeScript = name.startsWith('app/assets/') && name.endsWith('.js') && !name.endsWith('.min.js');
    if (!isThemeScript && roleOf(name, plugins) !== 'script') continue;
    problems.push(...(await checkScript(name, plugins, store)));
  }
  const config = store.text('app/assets/config.xml');
  problems.push(
    ...checkPage(outputs),
    ...checkImages(outputs),
    ...checkBudgets(outputs, settings.budgets),
    ...checkWidgetConfig(config, 'app/assets/config.xml', new Set(outputs.keys())),
  );
  return problems;
}
