import { readFileSync } from 'node:fs';

/** The text of one of the scripts in browser/ and client/, which run in a page and not here. */
export function browserScript(name: string): string {
  return readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
}
