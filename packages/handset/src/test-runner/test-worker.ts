import { parentPort, workerData } from 'node:worker_threads';
import { locate } from './locate.ts';
import type { TestJob, TestResult, WorkerMessage } from './protocol.ts';
import { openTestPage, PAGE_URL } from './test-page.ts';

const TEST_MS = 5_000;
/** After an error that no one caught: a test that only waits will not end, another has its `afterEach` to run. */
const LAST_MS = 50;
const job = workerData as TestJob;
const post = (message: WorkerMessage): void => parentPort?.postMessage(message);

const RUN_MODULES =
  "typeof require === 'function' && require.list && require.list().forEach(function (name) { require(name); });";

const maps = new Map<string, string>();
for (const [name, text] of Object.entries(job.outputs)) if (name.endsWith('.map')) maps.set(name.slice(0, -4), text);
for (const { name, map } of job.files) maps.set(name, map);

await runSuite('app', undefined);
for (const file of job.files) await runSuite(file.name, file);
post({ type: 'done' });

/** Run the tests of one file, or those that the application itself carries, each file in a page of its own. */
async function runSuite(suite: string, file: TestJob['files'][number] | undefined): Promise<void> {
  post({ type: 'start', suite, name: 'load' });
  const start = performance.now();
  const page = await openTestPage(job, (text) => post({ type: 'log', text })).catch((error: unknown) => error);
  if (!isPage(page)) return fail(suite, 'load', start, page);
  try {
    // Unit tests that stand in a module are there once it has run.
    if (!file) page.evaluate(RUN_MODULES, PAGE_URL);
    else {
      page.harness.forget();
      page.evaluate(file.code, PAGE_URL + file.name);
    }
    for (const error of page.uncaught.splice(0)) fail(suite, 'load', start, error);
    const names = [...page.harness.names()];
    for (const [index, name] of names.entries()) {
      if (job.grep === undefined || name.includes(job.grep)) await runTest(suite, name, index, page);
    }
  } catch (error) {
    fail(suite, 'load', start, error);
  } finally {
    page.close();
  }
}

type Page = Awaited<ReturnType<typeof openTestPage>>;

async function runTest(suite: string, name: string, index: number, page: Page): Promise<void> {
  post({ type: 'start', suite, name });
  const start = performance.now();
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_resolve, reject) => {
      const end = () => reject(new Error(`The test did not finish in ${TEST_MS / 1000} seconds.`));
      timer = setTimeout(end, TEST_MS);
      page.onUncaught = () => {
        clearTimeout(timer);
        timer = setTimeout(end, LAST_MS);
      };
    });
    await Promise.race([page.harness.run(index), late]);
    const [error] = page.uncaught;
    if (error) throw error;
    report({ suite, name, ok: true, milliseconds: performance.now() - start });
  } catch (error) {
    // What was thrown past the test is why it did not finish.
    fail(suite, name, start, page.uncaught[0] ?? error);
  } finally {
    clearTimeout(timer);
    page.onUncaught = () => undefined;
    page.uncaught.splice(0);
  }
}

function fail(suite: string, name: string, start: number, error: unknown): void {
  const { message, stack } = isErrorLike(error) ? error : { message: String(error), stack: '' };
  report({ suite, name, ok: false, milliseconds: performance.now() - start, message, at: locate(stack, maps) });
}

function report(result: TestResult): void {
  post({ type: 'result', result });
}

function isPage(value: unknown): value is Page {
  return typeof value === 'object' && value !== null && 'harness' in value;
}

function isErrorLike(value: unknown): value is { message: string; stack: string } {
  return typeof value === 'object' && value !== null && 'message' in value && 'stack' in value;
}
