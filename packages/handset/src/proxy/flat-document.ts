import path from 'node:path';
import { mimeType } from '../server/mime.ts';

/** A piece of the page as browser/page-agent.js writes it: text, or something to be replaced by content. */
export type FlatPart =
  | string
  | { readonly style: string; readonly media: string }
  | { readonly css: string; readonly media: string }
  | { readonly image: string }
  | { readonly inline: string };

export interface FlatPage {
  readonly parts: readonly FlatPart[];
  readonly scroll: number;
}

/** Reads a file of the application by its name below public/; undefined if there is none. */
export type ReadFile = (name: string) => Uint8Array | undefined;

const MAX_INLINE_IMAGE = 64 * 1024;
const PIXEL = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';

/**
 * Make the one document that is sent to the phone: style sheets and images are inside it, and its only script is the
 * library of local shortcuts with the part that sends everything else to the proxy.
 */
export function flatDocument(page: FlatPage, read: ReadFile, script: string, eventPath: string): string {
  let html = '<!DOCTYPE html>\n';
  for (const part of page.parts) {
    if (typeof part === 'string') html += part;
    else if ('style' in part) html += styleTag(sheet(part.style, read), part.media);
    else if ('css' in part) html += styleTag(inlineUrls(part.css, '', read), part.media);
    else if ('image' in part) html += ` src="${attribute(dataUrl(part.image, '', read))}"`;
    else html += ` style="${attribute(inlineUrls(part.inline, '', read))}"`;
  }
  const tail = `<form id="handset-form" method="post" action="${attribute(eventPath)}"></form><script>${script}</script>`;
  html = html.replace(/<\/head>/, () => `${NO_SCRIPT_STYLE}</head>`);
  if (page.scroll > 0) html = html.replace(/<body/, () => `<body data-handset-scroll="${page.scroll}"`);
  const end = html.lastIndexOf('</body>');
  return end === -1 ? html + tail : html.slice(0, end) + tail + html.slice(end);
}

/** Without any script, a button that lies over an element takes its taps. */
const NO_SCRIPT_STYLE =
  '<noscript><style>[data-tap]{position:relative}.handset-tap{position:absolute;left:0;top:0;width:100%;height:100%;opacity:0;border:0}</style></noscript>';

function styleTag(css: string, media: string): string {
  // A sheet cannot end its own element.
  const safe = css.replace(/<\/(?=style)/gi, '<\\/');
  return `<style${media ? ` media="${attribute(media)}"` : ''}>${safe}</style>`;
}

function sheet(href: string, read: ReadFile): string {
  const name = localName(href, '');
  const bytes = name === undefined ? undefined : read(name);
  if (name === undefined || !bytes) return '';
  const text = Buffer.from(bytes)
    .toString('utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .trim();
  return inlineUrls(text, path.posix.dirname(name), read);
}

function inlineUrls(css: string, folder: string, read: ReadFile): string {
  return css.replace(
    /url\(\s*(["']?)([^"')]*)\1\s*\)/g,
    (_all, _quote: string, url: string) => `url("${dataUrl(url, folder, read)}")`,
  );
}

function dataUrl(url: string, folder: string, read: ReadFile): string {
  if (/^data:image\//i.test(url)) return url;
  const name = localName(url, folder);
  const bytes = name === undefined ? undefined : read(name);
  const type = mimeType(name ?? '');
  if (!bytes || bytes.length > MAX_INLINE_IMAGE || !/^(image|font)\//.test(type)) return PIXEL;
  return `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;
}

/** The name below public/ that a relative reference means; undefined for anything else. */
function localName(reference: string, folder: string): string | undefined {
  const bare = reference.split(/[?#]/, 1)[0] ?? '';
  if (bare === '' || /^([a-z][a-z0-9+.-]*:|\/\/)/i.test(bare)) return undefined;
  try {
    const name = path.posix.join(bare.startsWith('/') ? '' : folder, decodeURIComponent(bare)).replace(/^\//, '');
    return name.startsWith('../') ? undefined : name;
  } catch {
    return undefined;
  }
}

function attribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
