import { SourceMap, type SourceMapPayload } from 'node:module';
import { type Node, parse } from 'acorn';
import { compileSource } from '../build/compiler.ts';
import type { SourceStore } from '../build/source-store.ts';
import { codeFrame } from '../code-frame.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { type Problem, type ProblemDetails, problem } from '../problem.ts';
import type { ProblemCode } from '../problem-catalogue.ts';
import { globalsOf } from './globals.ts';

/** Names that ES5 does not have; an application that declares one itself may use it. */
const AFTER_ES5 = new Set(
  'Promise Map Set WeakMap WeakSet Symbol Proxy Reflect globalThis fetch Int8Array Uint8Array BigInt WeakRef AbortController'.split(
    ' ',
  ),
);

/** Members that ES5's own objects do not have. */
const AFTER_ES5_MEMBERS = new Set(
  'Object.assign Object.hasOwn Object.is Object.entries Object.values Object.fromEntries Array.from Array.of Number.isInteger Number.isNaN Math.sign Math.trunc Math.hypot'.split(
    ' ',
  ),
);

/** Find what a script of the application uses that is not ES5; lines are those of the source, whatever its language. */
export async function checkScript(name: string, plugins: PluginRegistry, store: SourceStore): Promise<Problem[]> {
  const compiled = await compileSource(name, 'script', plugins, store);
  if (!compiled.ok) return [compiled.problem];
  const { output, map } = compiled.result;
  const text = store.text(name);
  const at = (line: number, column: number): Pick<ProblemDetails, 'file' | 'line' | 'column' | 'frame'> => {
    const found =
      map &&
      new SourceMap({ ...map, file: name, sourceRoot: '' } as unknown as SourceMapPayload).findEntry(line - 1, column);
    const sourceLine = found && 'originalLine' in found ? found.originalLine + 1 : line;
    return { file: name, line: sourceLine, frame: codeFrame(text, sourceLine) };
  };
  let tree: Node;
  try {
    tree = parse(output, { ecmaVersion: 5, locations: true });
  } catch (error) {
    const { loc, message } = error as { loc?: { line: number; column: number }; message: string };
    const what = message.replace(/ \(\d+:\d+\)$/, '');
    const place = at(loc?.line ?? 1, loc?.column ?? 0);
    return [problem('lint-es5-syntax', { ...place, message: `This is not ES5: ${what}.` })];
  }
  const problems: Problem[] = [];
  const report = (code: ProblemCode, node: Node, message: string): void => {
    problems.push(problem(code, { ...at(node.loc?.start.line ?? 1, node.loc?.start.column ?? 0), message }));
  };
  for (const { name: used, node } of globalsOf(tree)) {
    if (AFTER_ES5.has(used) || AFTER_ES5_MEMBERS.has(used))
      report('lint-es5-global', node, `${used} is not part of ES5.`);
  }
  const [first] = 'body' in tree && Array.isArray(tree.body) ? (tree.body as (Node & { directive?: string })[]) : [];
  if (first?.directive === 'use strict') {
    report('lint-use-strict', first, '"use strict" at the head of a file is lost, or covers other files.');
  }
  return problems;
}
