import path from 'node:path';
import { dataUrl } from './data-url.ts';
import { localFile, type ReadFile } from './local-file.ts';

const MAX_DEPTH = 8;
const ESCAPE = '\\\\[\\s\\S]';
const STRING = `"(?:[^"\\\\]|${ESCAPE})*"|'(?:[^'\\\\]|${ESCAPE})*'`;
const ADDRESS = `url\\(\\s*(?:(${STRING}|(?:[^"'()\\\\\\s]|${ESCAPE})+)\\s*)?\\)`;
const TOKEN = new RegExp(`${ADDRESS}|${STRING}|${ESCAPE}|\\s+`, 'gi');
const COMMENT = new RegExp(`(${STRING}|${ESCAPE})|/\\*[\\s\\S]*?(?:\\*/|$)`, 'g');
/** What may stand before the first rule: the character set, and imports with what they are for. */
const IMPORT = new RegExp(
  `^\\s*@(?:charset\\s+(?:${STRING})\\s*|import\\s*(?:${ADDRESS}|(${STRING}))([^;]*))(?:;|$)`,
  'i',
);

/**
 * Make styles stand alone: what a sheet of `folder` imports, and its images and fonts, are written into it; comments and
 * needless space go. Addresses that mean the document itself (`url(#gradient)`) or hold what they mean stay.
 */
export function flatStyles(css: string, folder: string, read: ReadFile, within: readonly string[] = []): string {
  let rest = css.replace(COMMENT, (_all, text: string | undefined) => text ?? '');
  let imported = '';
  for (let found = IMPORT.exec(rest); found; found = IMPORT.exec(rest)) {
    const [all, url, text, media = ''] = found;
    const sheet = flatSheet(unquote(url ?? text ?? ''), folder, read, within);
    imported += media.trim() && sheet ? `@media ${media.trim()}{${sheet}}` : sheet;
    rest = rest.slice(all.length);
  }
  const own = rest.replace(TOKEN, (token: string, url: string | undefined) => {
    if (url === undefined) return /^\s/.test(token) ? ' ' : token;
    const address = unquote(url);
    return /^(#|data:(image|font)\/)/i.test(address) ? token : `url("${dataUrl(address, folder, read)}")`;
  });
  return imported + own.trim();
}

/** A style sheet of the application, standing alone; empty if there is none, or if it imports itself. */
export function flatSheet(href: string, folder: string, read: ReadFile, within: readonly string[] = []): string {
  const file = localFile(href, folder, read);
  if (!file || within.includes(file.name) || within.length >= MAX_DEPTH) return '';
  const css = Buffer.from(file.bytes).toString('utf8');
  return flatStyles(css, path.posix.dirname(file.name), read, [...within, file.name]);
}

function unquote(text: string): string {
  return text.replace(/^(["'])([\s\S]*)\1$/, '$2').replace(/\\([\s\S])/g, '$1');
}
