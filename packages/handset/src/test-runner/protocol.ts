import type { TestFile } from './test-files.ts';

/** What the worker is given: the application as built, and the files of unit tests. */
export interface TestJob {
  /** Text of index.html, scripts, style sheets and source maps below public/. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly files: readonly TestFile[];
  /** Text of browser/test-harness.js. */
  readonly harness: string;
  /** Run only tests whose name holds this text. */
  readonly grep: string | undefined;
}

export interface TestResult {
  /** `app` for tests that sources of the application carry, else the test file. */
  readonly suite: string;
  readonly name: string;
  readonly ok: boolean;
  readonly milliseconds: number;
  readonly message?: string;
  /** Such as `app/list.test.coffee:12`. */
  readonly at?: string | undefined;
}

export type WorkerMessage =
  | { readonly type: 'start'; readonly suite: string; readonly name: string }
  | { readonly type: 'result'; readonly result: TestResult }
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'done' };
