import { type Assembly, createAssembler } from '../build/assembler.ts';
import type { PublicFolder, WriteResult } from '../build/public-folder.ts';
import { SOURCE_FOLDERS } from '../build/source-store.ts';
import { type Problem, problemOf } from '../problem.ts';
import type { Project } from '../project/project.ts';
import { createChangeBatch } from './change-batch.ts';
import { watchTree } from './tree-watcher.ts';

/** What one build did. */
export interface BuildReport {
  /** False if an error kept the outputs as they were. */
  readonly ok: boolean;
  /** Names below public/ that were written or removed. */
  readonly written: readonly string[];
  readonly removed: readonly string[];
  readonly problems: readonly Problem[];
  /** Number of sources compiled. */
  readonly compiled: number;
  /** Milliseconds from the first look at the sources to the last written file. */
  readonly milliseconds: number;
}

export interface WatchSession {
  /** The report of the last build. */
  readonly latest: BuildReport;
  close(): void;
}

export interface WatchOptions {
  readonly project: Project;
  readonly production: boolean;
  /** Where the outputs go. */
  readonly folder: PublicFolder;
  /** Called after every build; the first call comes before the session is returned. */
  readonly onBuild: (report: BuildReport) => void;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

/** Build once and again after every change, until closed. Faults in sources are reported and never thrown. */
export async function startWatching({
  project,
  production,
  folder,
  onBuild,
  now = () => performance.now(),
}: WatchOptions): Promise<WatchSession> {
  const { root, settings, plugins } = project;
  const assembler = createAssembler({ root, settings, plugins, production });
  let watchProblems: readonly Problem[] = [];

  // Set when public/ may lag behind the sources, so that the next build does not skip for lack of a change.
  let lagging = false;
  const build = async (assemble: () => Promise<Assembly | undefined>): Promise<BuildReport | undefined> => {
    const start = now();
    try {
      const assembly = (await assemble()) ?? (lagging ? await assembler.assemble() : undefined);
      if (!assembly) return undefined;
      lagging = false;
      const written = assembly.outputs ? folder.write(assembly.outputs) : NOTHING;
      const problems = [...assembly.problems, ...written.problems, ...watchProblems];
      return {
        ...written,
        ok: assembly.outputs !== undefined,
        problems,
        compiled: assembly.compiled,
        milliseconds: now() - start,
      };
    } catch (error) {
      lagging = true;
      return { ...NOTHING, ok: false, problems: [problemOf(error)], compiled: 0, milliseconds: now() - start };
    }
  };

  const finish = (report: BuildReport): BuildReport => {
    onBuild(report);
    return report;
  };

  let latest: BuildReport = { ...NOTHING, ok: false, compiled: 0, milliseconds: 0 };
  const batch = createChangeBatch(async (names) => {
    const report = await build(() => assembler.reassemble(names));
    if (report) latest = finish(report);
  });
  // The watch stands before the first build, so that no save falls between the two.
  const watcher = watchTree(root, SOURCE_FOLDERS, {
    onChange: (name) => batch.add(name),
    onProblem: (found) => {
      watchProblems = [...watchProblems, found].slice(-10);
    },
  });
  const first = await build(() => assembler.assemble());
  if (first) latest = finish(first);

  return {
    get latest() {
      return latest;
    },
    close() {
      batch.close();
      watcher.close();
    },
  };
}

const NOTHING: WriteResult = { written: [], removed: [], problems: [] };
