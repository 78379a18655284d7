import { SaxesParser } from 'saxes';
import { ProblemError } from '../problem.ts';

/** An element of a parsed document; `name` is the local name. */
export interface XmlElement {
  readonly name: string;
  readonly namespace: string;
  /** Attributes without a namespace by local name; `xml:lang` under that name. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  readonly text: string;
  readonly line: number;
}

interface OpenElement extends XmlElement {
  readonly children: XmlElement[];
  text: string;
}

const MAX_DEPTH = 100;

/** Parse a document with namespaces; throws `config-malformed` with line and column. Entities are never fetched. */
export function parseXml(text: string, file: string): XmlElement {
  const parser = new SaxesParser({ xmlns: true, position: true });
  const open: OpenElement[] = [];
  let root: XmlElement | undefined;
  parser.on('error', (error) => {
    const message = error.message.replace(/^\d+:\d+:\s*/, '');
    throw malformed(file, parser.line, parser.column, message);
  });
  parser.on('opentag', (tag) => {
    const attributes = new Map<string, string>();
    for (const attribute of Object.values(tag.attributes)) {
      if (attribute.prefix === '' || attribute.name === 'xml:lang') attributes.set(attribute.name, attribute.value);
    }
    const element = { name: tag.local, namespace: tag.uri, attributes, children: [], text: '', line: parser.line };
    const parent = open.at(-1);
    if (parent) parent.children.push(element);
    else root = element;
    open.push(element);
    if (open.length > MAX_DEPTH) throw malformed(file, parser.line, parser.column, 'the elements nest too deep');
  });
  parser.on('text', (content) => {
    for (const element of open) element.text += content;
  });
  parser.on('cdata', (content) => {
    for (const element of open) element.text += content;
  });
  parser.on('closetag', () => {
    open.pop();
  });
  parser.write(text).close();
  if (root === undefined) throw malformed(file, 1, 1, 'there is no element');
  return root;
}

function malformed(file: string, line: number, column: number, message: string): ProblemError {
  return new ProblemError('config-malformed', {
    file,
    line,
    column: Math.max(1, column),
    message: `Not well-formed XML: ${message}.`,
  });
}
