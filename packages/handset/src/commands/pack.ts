import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createAssembler } from '../build/assembler.ts';
import type { CommandContext, ExitStatus } from '../cli/context.ts';
import { bytes, plural } from '../cli/terminal.ts';
import { checkWidgetConfig } from '../lint/widget-config.ts';
import { writeWidgetArchive } from '../pack/widget-archive.ts';
import { openProject } from '../project/project.ts';

export interface PackOptions {
  readonly out?: string;
}

/** `handset pack`: build for production in memory and write it as a .wgt archive; refuses an invalid config.xml. */
export async function packCommand({ out }: PackOptions, { cwd, terminal }: CommandContext): Promise<ExitStatus> {
  const { root, name, settings, plugins } = await openProject(cwd);
  const assembly = await createAssembler({ root, settings, plugins, production: true }).assemble();
  const problems = [...assembly.problems];
  if (assembly.outputs) {
    const config = Buffer.from(assembly.outputs.get('config.xml')?.read() ?? '').toString('utf8');
    problems.push(...checkWidgetConfig(config, 'app/assets/config.xml', new Set(assembly.outputs.keys())));
  }
  terminal.showProblems(problems);
  if (!assembly.outputs || problems.some((p) => p.severity === 'error')) {
    terminal.emit({ ok: false, problems });
    terminal.say('not packed');
    return 1;
  }
  const archive = await writeWidgetArchive(assembly.outputs);
  const file = path.resolve(cwd, out ?? path.join(root, `${name}.wgt`));
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, archive);
  terminal.emit({ ok: true, file, bytes: archive.length, files: [...assembly.outputs.keys()], problems });
  terminal.say(
    `packed ${plural(assembly.outputs.size, 'file')} into ${path.relative(cwd, file)} (${bytes(archive.length)})`,
  );
  return 0;
}
