import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { errorsPage } from './errors-page.ts';
import { generatedPages, pagePath, withSection } from './pages.ts';

describe('generated pages', () => {
  it.each(Object.entries(generatedPages()))('%s is current', (page, text) => {
    expect(readFileSync(pagePath(page), 'utf8'), 'run: npm run docs:update').toBe(text);
  });

  it('keep what people wrote around a generated section', () => {
    const page = 'a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb';
    expect(withSection(page, 'x', 'new')).toBe('a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb');
    expect(() => withSection(page, 'y', 'new')).toThrow('no section');
  });

  it('cannot be broken by a bar in a text', () => {
    const kind = { status: 400, fault: 'client', origin: 'platform', meaning: 'a|b', remedy: 'c\nd' } as const;
    expect(errorsPage({ E: kind })).toContain('| `E` | 400 | a\\|b | c d | client | this platform alone |');
  });
});

describe('pages', () => {
  const pages = [...globSync('*.md', { cwd: pagePath('.') }), ...globSync('docs/**/*.md', { cwd: pagePath('.') })];

  it.each(pages)('%s links to what is there', (page) => {
    const text = prose(readFileSync(pagePath(page), 'utf8'));
    const links = [...text.matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)/g)].map((match) => match[1] ?? '');
    const missing = links.filter((link) => !existsSync(join(dirname(pagePath(page)), link)));
    expect(missing).toEqual([]);
  });

  it.each(pages)('%s links to headings that are there', (page) => {
    const text = prose(readFileSync(pagePath(page), 'utf8'));
    const missing = [...text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)/g)].filter(
      ([, link = '', anchor = '']) => {
        const target = link === '' ? pagePath(page) : join(dirname(pagePath(page)), link);
        return target.endsWith('.md') && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor);
      },
    );
    expect(missing.map(([whole]) => whole)).toEqual([]);
  });

  it('name the npm scripts that there are', () => {
    const scriptsOf = (folder: string): object =>
      JSON.parse(readFileSync(pagePath(join(folder, 'package.json')), 'utf8')).scripts ?? {};
    for (const page of pages) {
      for (const [line, name = '', workspace = '.'] of readFileSync(pagePath(page), 'utf8').matchAll(
        /npm run (?:-s )?([\w:-]+)(?: -w ([\w/-]+))?/g,
      ))
        expect(Object.keys(scriptsOf(workspace)), `${page}: ${line}`).toContain(name);
    }
  });
});

/** A page without its code, which holds patterns that look like links. */
const prose = (page: string): string => page.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');

/** What links call the headings of a page, as GitHub makes it of them. */
function anchorsOf(page: string): string[] {
  return [...page.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
