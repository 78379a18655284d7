import { readFileSync } from 'node:fs';
import { PACKAGE_FOLDER } from '../package-folder.ts';

/** The text of one of the scripts in browser/ and client/, which run in a page and not here. */
export function browserScript(name: string): string {
  return readFileSync(new URL(name, PACKAGE_FOLDER), 'utf8');
}
