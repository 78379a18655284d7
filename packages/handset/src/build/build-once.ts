import type { Project } from '../project/project.ts';
import { type Assembly, createAssembler } from './assembler.ts';
import { createPublicFolder, type WriteResult } from './public-folder.ts';

export interface BuildOnceResult {
  readonly assembly: Assembly;
  /** Undefined if errors kept public/ as it was. */
  readonly written: WriteResult | undefined;
}

/** Assemble a project and bring its public/ up to date. Throws `output-readonly`; faults in sources are in the assembly. */
export async function buildOnce(
  { root, settings, plugins }: Project,
  { production, clean = false }: { production: boolean; clean?: boolean },
): Promise<BuildOnceResult> {
  const assembly = await createAssembler({ root, settings, plugins, production }).assemble();
  return { assembly, written: assembly.outputs && createPublicFolder(root).write(assembly.outputs, { clean }) };
}
