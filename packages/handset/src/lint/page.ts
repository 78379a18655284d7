import path from 'node:path';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import type { Output } from '../build/output.ts';
import { type Problem, problem } from '../problem.ts';
import type { ProblemCode } from '../problem-catalogue.ts';

type Element = DefaultTreeAdapterTypes.Element;

/** Attributes that name other files of the application. */
const REFERENCES: Readonly<Record<string, readonly string[]>> = {
  script: ['src'],
  img: ['src', 'srcset'],
  input: ['src'],
  link: ['href'],
  audio: ['src'],
  video: ['src', 'poster'],
  source: ['src', 'srcset'],
};
const FRAMES = new Set(['iframe', 'frame', 'frameset', 'object', 'embed', 'applet']);
const NOT_CARRIED = new Set(['audio', 'video']);

/** Check the one document of an application: no other page, no frames, script order, relative references that exist. */
export function checkPage(outputs: ReadonlyMap<string, Output>): Problem[] {
  const problems: Problem[] = [];
  const page = outputs.get('index.html');
  const report = (code: ProblemCode, message: string, file = page?.source ?? 'index.html'): void => {
    problems.push(problem(code, { file, message }));
  };
  for (const [name, output] of outputs) {
    if (/\.x?html?$/.test(name) && name !== 'index.html')
      report('lint-document', `${name} is a second document.`, output.source);
    if (name.endsWith('.css')) {
      const text = Buffer.from(output.read()).toString('utf8');
      checkStyle(text, path.posix.dirname(name), outputs, (code, message) => report(code, message, output.source));
    }
  }
  if (!page) return problems;
  const text = Buffer.from(page.read()).toString('utf8');
  const scripts: string[] = [];
  for (const element of elementsOf(text)) {
    const tag = element.tagName;
    const attribute = (name: string): string | undefined => element.attrs.find((a) => a.name === name)?.value;
    if (FRAMES.has(tag)) report('lint-frame', `The page holds <${tag}>; these devices show one document.`);
    const isFile = tag === 'input' && attribute('type')?.toLowerCase() === 'file';
    if (NOT_CARRIED.has(tag) || isFile) {
      report('lint-unsupported', `The page holds <${tag}${isFile ? ' type="file"' : ''}>, which phones are not sent.`);
    }
    for (const name of REFERENCES[tag] ?? []) {
      const value = attribute(name) ?? '';
      const references = name === 'srcset' ? value.matchAll(CANDIDATE) : [['', value]];
      for (const [, reference = ''] of references) checkReference(reference, `<${tag}>`, '', outputs, report);
    }
    const script = tag === 'script' ? attribute('src') : undefined;
    if (script !== undefined) scripts.push(script);
    if (tag === 'base' && attribute('href') !== undefined) {
      report('lint-path', `<base> makes every path relative to ${attribute('href')}, not to the application.`);
    }
    const style = tag === 'style' ? textOf(element) : (attribute('style') ?? '');
    checkStyle(style, '', outputs, report);
    const link = tag === 'a' ? (attribute('href') ?? '') : '';
    if (/^[^#?:]+\.x?html?([?#]|$)/.test(link) && !link.startsWith('index.html')) {
      report('lint-document', `A link leads to a second document, ${link}.`);
    }
  }
  const at = (name: string): number => scripts.findIndex((script) => script.replace(/^\.\//, '').endsWith(name));
  const vendor = at('javascripts/vendor.js');
  const app = at('javascripts/app.js');
  const templates = Math.max(at('javascripts/templates.js'), at('js/templates.js'));
  if (app !== -1 && vendor > app) report('lint-order', 'app.js comes before vendor.js in the page.');
  if (templates !== -1 && vendor > templates)
    report('lint-order', 'templates.js comes before vendor.js, which holds its runtime.');
  if (app !== -1 && templates > app) report('lint-order', 'app.js comes before templates.js in the page.');
  return problems;
}

type Report = (code: ProblemCode, message: string, file?: string) => void;

/** An entry of `srcset`: its file, which may have a comma inside, then a width or density. */
const CANDIDATE = /[\s,]*([^\s,]\S*?)(?:,+(?:\s|$)|\s[^,]*(?:,|$)|$)/g;

/** What a style sheet names: `url(…)`, whose name has no case, and the text after `@import`. */
const STYLE_REFERENCE = /url\(\s*(["']?)([^"')]*?)\s*\1\s*\)|@import\s*(["'])([^"']*)\3/gi;

/** Check a style sheet, or part of one; `folder` is that of the file in which it stands. */
function checkStyle(text: string, folder: string, outputs: ReadonlyMap<string, Output>, report: Report): void {
  for (const [, , url, , sheet] of text.replace(/\/\*[\s\S]*?\*\//g, '').matchAll(STYLE_REFERENCE)) {
    if (sheet === undefined) checkReference(url ?? '', 'url()', folder, outputs, report);
    else checkReference(sheet, '@import', folder, outputs, report);
  }
}

function textOf(element: Element): string {
  return element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
}

function checkReference(
  reference: string,
  where: string,
  folder: string,
  outputs: ReadonlyMap<string, Output>,
  report: Report,
): void {
  if (reference === '' || /^(data|blob|about):/i.test(reference) || reference.startsWith('#')) return;
  if (/^([a-z][a-z0-9+.-]*:|\/)/i.test(reference)) {
    report('lint-path', `${where} names ${reference}, which is not relative.`);
    return;
  }
  const bare = reference.split(/[?#]/, 1)[0] ?? '';
  const target = path.posix.join(folder, decodeName(bare));
  if (!outputs.has(target)) report('lint-reference', `${where} names ${reference}, and there is no public/${target}.`);
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Every element of a document, in its order. */
export function* elementsOf(html: string): Iterable<Element> {
  const open: DefaultTreeAdapterTypes.Node[] = [parse(html)];
  for (let node = open.shift(); node; node = open.shift()) {
    if ('tagName' in node) yield node;
    if ('content' in node) open.unshift(node.content);
    if ('childNodes' in node) open.unshift(...node.childNodes);
  }
}
