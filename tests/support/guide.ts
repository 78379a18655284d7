import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const GUIDES = join(import.meta.dirname, '../../docs/guides');

/** The code blocks of one language below a heading of a guide, in their order: what a page tells to run is run from the page. */
export function guideBlocks(page: string, heading: string, language: string): string[] {
  const text = readFileSync(join(GUIDES, page), 'utf8');
  const [, section] = text.split(new RegExp(`^##+ ${heading}$`, 'm'));
  if (section === undefined) throw new Error(`${page} has no heading "${heading}"`);
  const [own = ''] = section.split(/^## /m);
  return [...own.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, of, code = '']) =>
    of === language ? [code] : [],
  );
}
