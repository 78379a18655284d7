import { Worker } from 'node:worker_threads';
import { createAssembler } from '../build/assembler.ts';
import { createSourceStore } from '../build/source-store.ts';
import { threadProgram } from '../package-folder.ts';
import type { Problem } from '../problem.ts';
import type { Project } from '../project/project.ts';
import { browserScript } from '../server/browser-script.ts';
import type { TestJob, TestResult, WorkerMessage } from './protocol.ts';
import { compileTestFiles } from './test-files.ts';

export interface TestRun {
  readonly results: readonly TestResult[];
  /** Faults in sources, for which nothing was run. */
  readonly problems: readonly Problem[];
}

export interface TestRunOptions {
  readonly grep?: string | undefined;
  readonly signal: AbortSignal;
  readonly onResult: (result: TestResult) => void;
  readonly onLog: (text: string) => void;
  /** Milliseconds without a sign of life after which the page is ended: a loop that never ends. */
  readonly patience?: number;
}

/** Build a project in memory and run its unit tests in a DOM, in a thread that a runaway test cannot hold. */
export async function runTests(project: Project, options: TestRunOptions): Promise<TestRun> {
  const { root, settings, plugins } = project;
  const assembly = await createAssembler({ root, settings, plugins, production: false }).assemble();
  const store = createSourceStore(root, ['app', 'test']);
  store.readAll();
  const { files, problems } = await compileTestFiles(store, plugins);
  const errors = [...assembly.problems, ...problems].filter((p) => p.severity === 'error');
  if (!assembly.outputs || errors.length > 0) return { results: [], problems: errors };
  const outputs: Record<string, string> = {};
  for (const [name, output] of assembly.outputs) {
    if (/\.(html|js|css|map)$/.test(name)) outputs[name] = Buffer.from(output.read()).toString('utf8');
  }
  const job: TestJob = { outputs, files, harness: browserScript('browser/test-harness.js'), grep: options.grep };
  return { results: await runInWorker(job, options), problems: [] };
}

function runInWorker(
  job: TestJob,
  { signal, onResult, onLog, patience = 20_000 }: TestRunOptions,
): Promise<TestResult[]> {
  const results: TestResult[] = [];
  const worker = new Worker(threadProgram('test-runner/test-worker.ts'), { workerData: job });
  return new Promise((resolve, reject) => {
    let now = { suite: 'app', name: 'load' };
    let timer: NodeJS.Timeout;
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      void worker.terminate();
      resolve(results);
    };
    const keep = (result: TestResult): void => {
      results.push(result);
      onResult(result);
    };
    const watch = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const message = `It blocked the page for ${patience / 1000} seconds and was ended; the tests after it did not run.`;
        keep({ ...now, ok: false, milliseconds: patience, message });
        end();
      }, patience);
    };
    signal.addEventListener('abort', end);
    watch();
    worker.on('message', (message: WorkerMessage) => {
      watch();
      if (message.type === 'start') now = message;
      else if (message.type === 'result') keep(message.result);
      else if (message.type === 'log') onLog(message.text);
      else end();
    });
    worker.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}
