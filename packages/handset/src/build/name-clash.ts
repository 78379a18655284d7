import { scriptFault } from '../plugins/script-fault.ts';
import type { ProblemDetails } from '../problem.ts';
import { type BundlePart, joinCode, SCRIPT_HEADER, sourcePlace } from './bundle.ts';

/**
 * What keeps scripts from sharing a page that are right each by itself: a name that `let`, `const` or `class` gives stands
 * in another, too. Hardly a script for these devices has such a word: only then are all of them parsed as one.
 */
export async function nameClash(parts: readonly BundlePart[]): Promise<ProblemDetails | undefined> {
  if (!parts.some((part) => part.declaresOnce)) return undefined;
  const together = await faultOf(parts);
  if (!together) return undefined;
  const { message } = together;
  const place = sourcePlace(parts, SCRIPT_HEADER, together);
  if (!place) return { message };
  const own = parts.filter((part) => part.source === place.file);
  if (await faultOf(own)) return { ...place, message };
  for (const other of parts) {
    if (own.includes(other) || !(await faultOf([other, ...own]))) continue;
    const remedy = 'Give one of the two another name, or put the code of its file into a function.';
    return { ...place, message: `${message} in ${other.source}, which shares the page with this file.`, remedy };
  }
  return { ...place, message };
}

function faultOf(parts: readonly BundlePart[]) {
  return scriptFault(joinCode(parts, SCRIPT_HEADER));
}
