import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { CliError } from '../cli-error.ts';

/** The member of the combined document that contains the files of the original. */
const FILES = 'x-files';
const MOST_FILES = 100;

type Reader = (text: string) => unknown;

/**
 * The text of a complete OpenAPI document. If the document is a file, the files that it refers to are put into it. If it has an address, its references become absolute
 * addresses, and the platform fetches them. Relative server addresses become absolute, too. A document that needs none of this stays
 * unchanged, with its line numbers. Rejects with a `CliError` for a file that cannot be read, or is not below the document's folder.
 */
export async function wholeDocument(text: string, at: URL): Promise<string> {
  const { parse } = await import('yaml');
  const read: Reader = (source) => (/^\s*\{/.test(source) ? JSON.parse(source) : parse(source));
  let root: unknown;
  try {
    root = read(text);
  } catch {
    // What is wrong with it the platform says, with the line.
    return text;
  }
  if (!isObject(root)) return text;
  const whole = new WholeDocument(at, read);
  const made = whole.of(root, at);
  await whole.addFiles(made);
  return whole.changed ? JSON.stringify(made) : text;
}

class WholeDocument {
  changed = false;
  readonly #at: URL;
  readonly #read: Reader;
  /** Files by their addresses, in the order in which they were named. */
  readonly #files = new Map<string, number>();

  constructor(at: URL, read: Reader) {
    this.#at = at;
    this.#read = read;
  }

  /** The document, or a file of it, with references and servers that count wherever it stands. */
  of(root: Record<string, unknown>, at: URL): Record<string, unknown> {
    const made = this.#walk(root, at) as Record<string, unknown>;
    const main = at.href === this.#at.href;
    if (!main || at.protocol === 'file:' || Array.isArray(made.servers) || made.openapi === undefined) return made;
    this.changed = true;
    return { ...made, servers: [{ url: at.origin }] };
  }

  /** Adds the files that are referred to, until no new one is found. */
  async addFiles(made: Record<string, unknown>): Promise<void> {
    const contents: unknown[] = [];
    for (const [href] of this.#files) {
      const at = new URL(href);
      const content = this.#read(await readBeside(at, this.#at));
      contents.push(isObject(content) ? this.of(content, at) : content);
    }
    if (contents.length > 0) made[FILES] = contents;
  }

  #walk(value: unknown, at: URL): unknown {
    if (Array.isArray(value)) return value.map((one) => this.#walk(one, at));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => {
        if (name === '$ref' && typeof one === 'string') return [name, this.#reference(one, at)];
        if (name === 'servers' && Array.isArray(one)) return [name, one.map((server) => this.#server(server, at))];
        return [name, this.#walk(one, at)];
      }),
    );
  }

  #reference(reference: string, at: URL): string {
    const [file = '', pointer = ''] = reference.split(/#(.*)/s);
    const target = file === '' ? at : URL.parse(file, at.href);
    if (!target || target.href === this.#at.href) return file === '' && target ? reference : `#${pointer}`;
    this.changed = true;
    if (target.protocol !== 'file:') return `${target.href}#${pointer}`;
    let index = this.#files.get(target.href);
    if (index === undefined) {
      index = this.#files.size;
      if (index >= MOST_FILES) throw new CliError('usage', `The document names more than ${MOST_FILES} files.`);
      this.#files.set(target.href, index);
    }
    return `#/${FILES}/${index}${pointer}`;
  }

  #server(server: unknown, at: URL): unknown {
    if (!isObject(server) || typeof server.url !== 'string' || at.protocol === 'file:') return server;
    // A variable in braces is filled in later.
    if (/^[a-z][a-z0-9+.-]*:/i.test(server.url) || server.url.startsWith('{')) return server;
    this.changed = true;
    const url = new URL(server.url, at).href.replaceAll('%7B', '{').replaceAll('%7D', '}');
    return { ...server, url };
  }
}

/** A document of somebody else names no file outside of its own folder: its text goes to the platform. */
async function readBeside(at: URL, main: URL): Promise<string> {
  const shown = fileURLToPath(at);
  if (!at.href.startsWith(new URL('.', main).href))
    throw new CliError('usage', `The document names ${shown}, which is not below its own folder.`);
  try {
    return await readFile(at, 'utf8');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CliError('usage', `The document names ${shown}, which cannot be read: ${message}`, undefined, {
      cause: error,
    });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
