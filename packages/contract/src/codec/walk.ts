import type { FieldProblem } from '../errors.ts';

/** Deepest nesting of an input; deeper ones are refused so that no recursion here or behind overflows the stack. */
export const maxDepth = 100;

/** More problems than these help nobody; a hostile list of a million bad elements must not cost a million messages. */
export const maxProblems = 50;

/** Where a walk over a value is, and what it found wrong so far. */
export interface Walk {
  readonly path: (string | number)[];
  readonly problems: FieldProblem[];
}

export function newWalk(): Walk {
  return { path: [], problems: [] };
}

/** Longest part of a path that is given back: a key is its sender's, and may be as long as the whole body. */
const longestStep = 256;

/** `a.b[2].c` */
export function pathName(path: readonly (string | number)[]): string {
  let name = '';
  for (const step of path) {
    if (typeof step === 'number') name += `[${step}]`;
    else name += `${name === '' ? '' : '.'}${step.length > longestStep ? `${step.slice(0, longestStep)}…` : step}`;
  }
  return name;
}

/** Notes that the value at the walk's present place breaks a rule; `message` continues a sentence that starts with the field's name. */
export function report(walk: Walk, message: string): void {
  if (walk.problems.length < maxProblems) walk.problems.push({ name: pathName(walk.path), message });
}

/** `report` for the member `step` below the present place. */
export function reportAt(walk: Walk, step: string | number, message: string): void {
  walk.path.push(step);
  report(walk, message);
  walk.path.pop();
}
