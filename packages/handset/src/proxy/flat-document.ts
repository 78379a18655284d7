import { dataUrl } from './data-url.ts';
import { flatSheet, flatStyles } from './flat-styles.ts';
import type { ReadFile } from './local-file.ts';

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
  readonly alerts: readonly string[];
}

/**
 * Make the one document that is sent to the phone: style sheets and images are inside it, and its only script is the
 * library of local shortcuts with the part that sends everything else to the proxy.
 */
export function flatDocument(page: FlatPage, read: ReadFile, script: string, eventPath: string): string {
  let html = '<!DOCTYPE html>\n';
  for (const part of page.parts) {
    if (typeof part === 'string') html += part;
    else if ('style' in part) html += styleTag(flatSheet(part.style, '', read), part.media);
    else if ('css' in part) html += styleTag(flatStyles(part.css, '', read), part.media);
    else if ('image' in part) html += ` src="${attribute(dataUrl(part.image, '', read))}"`;
    else html += ` style="${attribute(flatStyles(part.inline, '', read))}"`;
  }
  const alert = attribute(page.alerts.join('\n'));
  const spoken = alert && `<noscript><p role="alert">${alert}</p></noscript>`;
  const tail = `${spoken}<form id="handset-form" method="post" action="${attribute(eventPath)}"></form><script>${script}</script>`;
  html = html.replace(/<\/head>/, () => `${NO_SCRIPT_STYLE}</head>`);
  if (page.scroll > 0) html = html.replace(/<body/, () => `<body data-handset-scroll="${page.scroll}"`);
  if (alert) html = html.replace(/<body/, () => `<body data-handset-alert="${alert}"`);
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

function attribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
