import vm from 'node:vm';
import { JSDOM, ResourceLoader, VirtualConsole } from 'jsdom';
import type { TestJob } from './protocol.ts';

/** The functions that browser/test-harness.js puts into the page. */
export interface Harness {
  names(): string[];
  forget(): void;
  run(index: number): Promise<void>;
}

export interface TestPage {
  readonly harness: Harness;
  /** Errors that no one caught since the page was made. */
  readonly uncaught: Error[];
  /** Called when there is one more of them. */
  onUncaught: () => void;
  /** Run a script in the page. */
  evaluate(code: string, url: string): void;
  close(): void;
}

export const PAGE_URL = 'http://localhost/';
const LOAD_MS = 10_000;

/** Open the built application in a DOM of 240 × 400 with the test functions in place, and wait for its load event. */
export async function openTestPage(job: TestJob, log: (text: string) => void): Promise<TestPage> {
  const uncaught: Error[] = [];
  let page: TestPage | undefined;
  const virtualConsole = new VirtualConsole();
  virtualConsole.on('jsdomError', (error: Error & { detail?: unknown; cause?: unknown }) => {
    const inner = error.cause ?? error.detail;
    // jsdom does not draw: what it says about missing drawing is no fault of the page.
    if (/^Not implemented/.test(error.message)) return;
    uncaught.push(isError(inner) ? inner : error);
    page?.onUncaught();
  });
  for (const method of ['log', 'info', 'warn', 'error'] as const) {
    virtualConsole.on(method, (...values: unknown[]) => log(values.map(String).join(' ')));
  }
  const dom = new JSDOM(job.outputs['index.html'] ?? '', {
    url: PAGE_URL,
    runScripts: 'dangerously',
    pretendToBeVisual: true,
    resources: createOutputLoader(job.outputs),
    virtualConsole,
    beforeParse(window) {
      Object.assign(window, { innerWidth: 240, innerHeight: 400 });
      window.eval(job.harness);
    },
  });
  const { window } = dom;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`The page did not finish loading in ${LOAD_MS / 1000} seconds.`)),
      LOAD_MS,
    );
    window.addEventListener('load', () => {
      clearTimeout(timer);
      resolve();
    });
  });
  page = {
    harness: window.__handsetTests as Harness,
    uncaught,
    onUncaught: () => undefined,
    evaluate: (code, url) => {
      new vm.Script(code, { filename: url }).runInContext(dom.getInternalVMContext());
    },
    close: () => window.close(),
  };
  return page;
}

/** Serves what was built and nothing else: a unit test reaches no network. */
function createOutputLoader(outputs: TestJob['outputs']): ResourceLoader {
  return new (class extends ResourceLoader {
    override fetch(url: string) {
      const text = outputs[decodeURIComponent(new URL(url).pathname).slice(1)];
      if (!url.startsWith(PAGE_URL) || text === undefined) return null;
      return Promise.resolve(Buffer.from(text)) as ReturnType<ResourceLoader['fetch']>;
    }
  })();
}

/** Errors of the page come from another realm, where `instanceof` fails. */
function isError(value: unknown): value is Error {
  return typeof value === 'object' && value !== null && 'message' in value && 'stack' in value;
}
