import { SaxesParser } from 'saxes';
import { ObjectError } from '../../kernel/objects/index.ts';

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** What goes into an element: text, or elements by name; a list repeats the element, undefined leaves it out. */
export type XmlValue = string | number | boolean | Date | XmlValue[] | { [name: string]: XmlValue | undefined };

/** A document as S3 sends it. */
export function writeXml(root: string, value: XmlValue, options: { namespace?: boolean } = {}): string {
  const attribute = options.namespace === false ? '' : ` xmlns="${NAMESPACE}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root}${attribute}>${content(value)}</${root}>`;
}

function content(value: XmlValue): string {
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== 'object') return escapeText(String(value));
  return Object.entries(value)
    .flatMap(([name, inner]) =>
      inner === undefined ? [] : Array.isArray(inner) ? inner.map((one) => element(name, one)) : [element(name, inner)],
    )
    .join('');
}

function element(name: string, value: XmlValue): string {
  return `<${name}>${content(value)}</${name}>`;
}

/** What XML 1.0 cannot hold at all becomes U+FFFD; `encoding-type=url` is how clients list such keys. */
function escapeText(text: string): string {
  return text
    .replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '\u{FFFD}')
    .replace(/[<>&"\r]/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** An element of a request: its text, and the elements below it in order. */
export interface XmlElement {
  name: string;
  text: string;
  children: XmlElement[];
}

const MAX_DEPTH = 20;

/** Reads a document without attributes' meaning, namespaces or entities of its own. Throws `MalformedXML`. */
export function readXml(text: string): XmlElement {
  const parser = new SaxesParser({ xmlns: false });
  const root: XmlElement = { name: '', text: '', children: [] };
  const stack = [root];
  parser.on('error', fail);
  // No document type, and so no entities but the five: nothing grows and nothing is fetched.
  parser.on('doctype', fail);
  parser.on('opentag', ({ name }) => {
    const element: XmlElement = { name, text: '', children: [] };
    stack.at(-1)?.children.push(element);
    if (stack.push(element) > MAX_DEPTH) fail();
  });
  parser.on('closetag', () => void stack.pop());
  parser.on('text', addText);
  parser.on('cdata', addText);
  function addText(more: string): void {
    const current = stack.at(-1);
    if (current) current.text += more;
  }
  parser.write(text).close();
  const [document] = root.children;
  if (!document) return fail();
  return document;
}

/** The text of the first child of that name. */
export function childText(element: XmlElement, name: string): string | undefined {
  return element.children.find((child) => child.name === name)?.text;
}

function fail(): never {
  throw new ObjectError('MalformedXML', 'The XML that was sent is not well-formed or not of the published schema.');
}
