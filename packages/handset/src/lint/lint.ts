import { createAssembler } from '../build/assembler.ts';
import { createSourceStore } from '../build/source-store.ts';
import type { Problem } from '../problem.ts';
import type { Project } from '../project/project.ts';
import { checkBudgets } from './budgets.ts';
import { noDefinitions } from './definitions.ts';
import { checkScript, define } from './es5.ts';
import { checkImages } from './images.ts';
import { lintScripts } from './lint-scripts.ts';
import { checkPage } from './page.ts';
import { checkWidgetConfig } from './widget-config.ts';

/** Hold a project against the limits of the devices; faults that keep it from building come alone. */
export async function lintProject({ root, settings, plugins }: Project): Promise<Problem[]> {
  // What is newer than ES5 is told below, all of it and not only the first.
  const assembly = await createAssembler({ root, settings, plugins, production: true, keepsNewer: true }).assemble();
  if (!assembly.outputs) return [...assembly.problems];
  const outputs = assembly.outputs;
  const store = createSourceStore(root);
  store.readAll();
  const problems = [...assembly.problems];

  const { scripts, problems: faults } = await lintScripts(store, plugins, outputs);
  problems.push(...faults);
  const definitions = noDefinitions();
  for (const script of scripts) define(script, definitions);
  const allowed = new Set(settings.allow);
  const later = scripts.flatMap((s) => (s.kind === 'vendor' ? [] : checkScript(s, definitions, allowed)));
  // Pug writes the body of a loop twice: for a list, and for an object.
  problems.push(...new Map(later.map((found) => [`${found.file}:${found.line} ${found.message}`, found])).values());

  const config = store.text('app/assets/config.xml');
  problems.push(
    ...checkPage(outputs),
    ...checkImages(outputs),
    ...checkBudgets(outputs, settings.budgets),
    ...checkWidgetConfig(config, 'app/assets/config.xml', new Set(outputs.keys())),
  );
  return problems;
}
