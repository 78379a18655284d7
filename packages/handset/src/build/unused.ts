import { type Problem, problem } from '../problem.ts';

/** Files beside the sources that nobody expects in public/: papers, partial templates, unit tests, settings of tools. */
const PAPERS =
  /(^|\/)(_[^/]*|readme[^/]*|licen[sc]e[^/]*|changelog[^/]*|notice[^/]*|authors[^/]*|[^/]*\.(md|txt)|[^/]*\.test\.[^/]*)$/i;
const MOST_SHOWN = 5;

/** Files in app/ and vendor/ that no language handles and that so become nothing. `others`: names with the role `other`. */
export function unusedSources(others: readonly string[]): Problem[] {
  const unused = others.filter((name) => !PAPERS.test(name));
  if (unused.length === 0) return [];
  const shown = unused.slice(0, MOST_SHOWN).join(', ');
  const more = unused.length > MOST_SHOWN ? ` and ${unused.length - MOST_SHOWN} more` : '';
  const message = `Nothing handles ${shown}${more}: ${unused.length === 1 ? 'it is' : 'they are'} not in public/.`;
  return [problem('source-unused', { file: unused[0], message })];
}
