import { type Node, parse } from 'acorn';
import { type Problem, type ProblemDetails, problem } from '../problem.ts';
import { addDefinitions, type Definitions } from './definitions.ts';
import { laterUses } from './later-uses.ts';
import { unsupportedUses } from './unsupported.ts';

/** JavaScript of an application as it will run, and where it comes from. */
export interface LintScript {
  readonly kind: 'file' | 'theme' | 'template' | 'inline' | 'vendor';
  /** What the compiler made of the source; a theme's script has a script tag of its own, a template is a function expression, an inline script may be a handler's body. */
  readonly code: string;
  /** Where a place of `code` (line from 1, column from 0) stands in the source; `word` is what it holds. */
  place(line: number, column: number, word: string): Place;
  /** The line of the source, for comments that allow something. */
  sourceLine(file: string, line: number): string;
}

type Place = Pick<ProblemDetails, 'file' | 'line' | 'frame'>;

/** Add what a script defines, whatever version of the language it is written in. */
export function define(script: LintScript, definitions: Definitions): void {
  try {
    const tree = parse(wrapped(script), { ecmaVersion: 'latest', sourceType: 'script' });
    addDefinitions(tree, script.kind === 'vendor', definitions);
  } catch {
    // What does not parse at all was reported by the build, or will be below.
  }
}

/** Find what a script of the application uses that is not ES5, or not carried to phones; lines are those of the source, whatever its language. */
export function checkScript(script: LintScript, definitions: Definitions, allowed: ReadonlySet<string>): Problem[] {
  const code = wrapped(script);
  let tree: Node;
  try {
    tree = parse(code, { ecmaVersion: 5, locations: true });
  } catch (error) {
    const { loc, pos, message } = error as { loc?: { line: number; column: number }; pos?: number; message: string };
    const what = message.replace(/ \(\d+:\d+\)$/, '');
    const rest = code.slice(pos ?? 0, (pos ?? 0) + 80).split('\n', 1)[0] ?? '';
    return [
      problem('lint-es5-syntax', {
        ...script.place(loc?.line ?? 1, loc?.column ?? 0, rest),
        message: `This is not ES5: ${what}.`,
      }),
    ];
  }
  const placeOf = (node: Node, word: string): Place =>
    script.place(node.loc?.start.line ?? 1, node.loc?.start.column ?? 0, word);
  const problems: Problem[] = [];
  for (const { kind, name, node, message, wayOut, doubt } of laterUses(tree, definitions, script.kind === 'template')) {
    const place = placeOf(node, name.split('.').at(-1) ?? name);
    if (allowed.has(name) || isAllowedAt(script, place, name)) continue;
    const code = kind === 'global' ? 'lint-es5-global' : 'lint-es5-method';
    const remedy = [wayOut || 'Do without it.', OTHERWISE, doubt].filter(Boolean).join(' ');
    problems.push(problem(code, { ...place, message, remedy }));
  }
  for (const { name, node, message, remedy } of unsupportedUses(tree, definitions)) {
    const place = placeOf(node, name);
    if (allowed.has(name) || isAllowedAt(script, place, name)) continue;
    problems.push(problem('lint-unsupported', { ...place, message, remedy }));
  }
  const [first] = 'body' in tree && Array.isArray(tree.body) ? (tree.body as (Node & { directive?: string })[]) : [];
  if (script.kind === 'file' && first?.directive === 'use strict') {
    const message = '"use strict" at the head of a file is lost: the files become one script.';
    problems.push(problem('lint-use-strict', { ...placeOf(first, 'use strict'), message }));
  }
  return problems;
}

const OTHERWISE = 'Or put a library that brings it into vendor/.';

/** A comment `handset-allow <name>, …` on the line or on the one before. */
function isAllowedAt(script: LintScript, { file = '', line }: Place, name: string): boolean {
  if (line === undefined) return false;
  return [line - 1, line].some((n) => {
    const names = /handset-allow:?\s+([\w$., ]+)/.exec(script.sourceLine(file, n))?.[1] ?? '';
    return names.split(/[\s,]+/).includes(name);
  });
}

function wrapped({ kind, code }: LintScript): string {
  return kind === 'template' ? `templates.t = ${code.trim()};` : code;
}
