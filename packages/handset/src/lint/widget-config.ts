import { codeFrame } from '../code-frame.ts';
import { type Problem, ProblemError, problem } from '../problem.ts';
import type { ProblemCode } from '../problem-catalogue.ts';
import { parseXml, type XmlElement } from '../project/xml.ts';

const NAMESPACE = 'http://www.w3.org/ns/widgets';
const VIEW_MODES = new Set(['windowed', 'floating', 'fullscreen', 'maximized', 'minimized', 'all']);
const CONTENT_TYPES = new Set(['text/html', 'application/xhtml+xml', 'image/svg+xml']);
const LANGUAGE = /^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$/;
const IRI = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]+$/;
/** Elements that a widget may hold once, or once in each language. */
const ONCE = new Set(['author', 'content']);
const ONCE_A_LANGUAGE = new Set(['name', 'description', 'license']);
const KNOWN = new Set([...ONCE, ...ONCE_A_LANGUAGE, 'icon', 'preference', 'feature', 'access']);

interface Reporter {
  wrong(element: XmlElement, message: string): void;
  advise(element: XmlElement, message: string, remedy?: string): void;
}

/**
 * Validate config.xml as W3C Widget Packaging and XML Configuration asks (and `access` as Widget Access Request Policy).
 * `files` are the files of the package, to which icon, content and license refer.
 */
export function checkWidgetConfig(text: string, file: string, files: ReadonlySet<string>): Problem[] {
  const problems: Problem[] = [];
  const report = (code: ProblemCode, { line }: XmlElement, message: string, remedy?: string): void => {
    problems.push(problem(code, { file, line, message, remedy, frame: codeFrame(text, line) }));
  };
  let widget: XmlElement;
  try {
    widget = parseXml(text, file);
  } catch (error) {
    if (error instanceof ProblemError) return [error.problem];
    throw error;
  }
  const reporter: Reporter = {
    wrong: (element, message) => report('widget-invalid', element, message),
    advise: (element, message, remedy) => report('widget-advice', element, message, remedy),
  };
  if (widget.name !== 'widget' || widget.namespace !== NAMESPACE) {
    reporter.wrong(widget, `The root must be <widget xmlns="${NAMESPACE}">.`);
    return problems;
  }
  checkRoot(widget, reporter);
  checkCounts(widget, reporter);
  const preferences = new Set<string>();
  for (const child of widget.children) {
    if (child.namespace === NAMESPACE) checkChild(child, files, preferences, reporter);
  }
  return problems;
}

function checkRoot(widget: XmlElement, { wrong, advise }: Reporter): void {
  const { attributes } = widget;
  const id = attributes.get('id');
  if (id === undefined)
    advise(widget, 'The widget has no id; updates are matched by it.', 'Add id="http://…" to <widget>.');
  else if (!IRI.test(id)) wrong(widget, `The id "${id}" is not an IRI such as http://example.org/my-app.`);
  const version = attributes.get('version');
  if (version === undefined) advise(widget, 'The widget has no version.', 'Add version="1.0" to <widget>.');
  else if (version.trim() === '' || !/^[\w.+ -]+$/.test(version)) wrong(widget, `"${version}" is no version.`);
  for (const side of ['width', 'height']) {
    const value = attributes.get(side);
    if (value !== undefined && !/^\d+$/.test(value))
      wrong(widget, `The ${side} "${value}" is not a whole number of pixels.`);
  }
  for (const mode of (attributes.get('viewmodes') ?? '').split(/\s+/).filter(Boolean)) {
    if (!VIEW_MODES.has(mode)) wrong(widget, `"${mode}" is no view mode; there are ${[...VIEW_MODES].join(', ')}.`);
  }
}

function checkCounts(widget: XmlElement, { wrong, advise }: Reporter): void {
  const seen = new Set<string>();
  for (const child of widget.children) {
    if (child.namespace !== NAMESPACE || !KNOWN.has(child.name)) {
      advise(child, `<${child.name}> is not an element of a widget.`);
      continue;
    }
    const language = ONCE_A_LANGUAGE.has(child.name) ? (child.attributes.get('xml:lang') ?? '').toLowerCase() : '';
    const key = `${child.name}/${language}`;
    const limited = ONCE.has(child.name) || ONCE_A_LANGUAGE.has(child.name);
    if (limited && seen.has(key))
      wrong(child, `<${child.name}> stands twice${language ? ` for "${language}"` : ''}; only the first counts.`);
    seen.add(key);
    const lang = child.attributes.get('xml:lang');
    if (lang !== undefined && !LANGUAGE.test(lang)) wrong(child, `"${lang}" is not a language tag.`);
  }
  if (!widget.children.some((c) => c.name === 'name' && c.text.trim() !== '')) wrong(widget, 'The widget has no name.');
  if (!widget.children.some((c) => c.name === 'icon'))
    advise(widget, 'The widget names no icon; devices look for icon.png.', 'Add <icon src="icon.png"/>.');
}

function checkChild(child: XmlElement, files: ReadonlySet<string>, preferences: Set<string>, reporter: Reporter): void {
  const { wrong } = reporter;
  const get = (name: string): string | undefined => child.attributes.get(name);
  switch (child.name) {
    case 'name':
      if (get('short') !== undefined && get('short')?.trim() === '') wrong(child, 'The short name is empty.');
      break;
    case 'author':
      if (get('href') !== undefined && !IRI.test(get('href') ?? ''))
        wrong(child, `The author's href "${get('href')}" is not an IRI.`);
      break;
    case 'license':
      if (get('href') !== undefined && !IRI.test(get('href') ?? '')) checkFile(child, 'href', files, reporter);
      break;
    case 'icon':
      checkFile(child, 'src', files, reporter);
      for (const side of ['width', 'height']) {
        const value = get(side);
        if (value !== undefined && !/^[1-9]\d*$/.test(value))
          wrong(child, `The icon's ${side} "${value}" is not a number of pixels.`);
      }
      break;
    case 'content':
      checkFile(child, 'src', files, reporter);
      if (get('type') !== undefined && !CONTENT_TYPES.has(get('type') ?? ''))
        wrong(child, `"${get('type')}" is no type of a start page.`);
      if (get('encoding') !== undefined && !/^utf-?8$/i.test(get('encoding') ?? '')) wrong(child, 'The page is UTF-8.');
      break;
    case 'preference':
      checkPreference(child, preferences, reporter);
      break;
    case 'feature':
      checkFeature(child, reporter);
      break;
    case 'access':
      checkAccess(child, reporter);
      break;
  }
}

function checkFile(child: XmlElement, attribute: string, files: ReadonlySet<string>, { wrong }: Reporter): void {
  const path = child.attributes.get(attribute) ?? '';
  if (path === '') wrong(child, `<${child.name}> needs ${attribute}.`);
  else if (!files.has(path.replace(/^\//, '')))
    wrong(child, `<${child.name}> names ${path}, and there is no public/${path}.`);
}

function checkPreference(child: XmlElement, names: Set<string>, { wrong }: Reporter): void {
  const name = child.attributes.get('name') ?? '';
  if (name === '') wrong(child, 'A preference needs a name.');
  else if (names.has(name)) wrong(child, `The preference "${name}" stands twice; only the first counts.`);
  names.add(name);
  checkBoolean(child, 'readonly', wrong);
}

function checkFeature(child: XmlElement, { wrong }: Reporter): void {
  const name = child.attributes.get('name') ?? '';
  if (!IRI.test(name)) wrong(child, `The feature's name "${name}" is not an IRI.`);
  checkBoolean(child, 'required', wrong);
  for (const param of child.children) {
    if (param.name !== 'param') continue;
    if (!param.attributes.get('name') || !param.attributes.get('value'))
      wrong(param, 'A param needs a name and a value.');
  }
}

function checkAccess(child: XmlElement, { wrong }: Reporter): void {
  const origin = child.attributes.get('origin') ?? '';
  if (origin !== '*' && !/^https?:\/\/[a-z0-9.-]+(:\d+)?\/?$/i.test(origin)) {
    wrong(child, `The origin "${origin}" is not * or a scheme and host such as https://news.example.`);
  }
  checkBoolean(child, 'subdomains', wrong);
}

function checkBoolean(child: XmlElement, attribute: string, wrong: Reporter['wrong']): void {
  const value = child.attributes.get(attribute);
  if (value !== undefined && value !== 'true' && value !== 'false')
    wrong(child, `${attribute} must be true or false, not "${value}".`);
}
