import type { DocumentValue } from '@agentplatform/contract';
import { atPointer, isObject } from '../tools/json-pointer.ts';
import type { Problem } from '../tools/problem.ts';
import type { CompileLimits } from './limits.ts';
import { type ReadDocument, readDocument } from './read-document.ts';
import { UnreadableDocumentError } from './read-yaml.ts';

/** A place in one of the files of a document. */
export interface Place {
  /** URL of the file; empty for a document of which nobody knows where it came from. */
  file: string;
  pointer: string;
}

/** What is at a place. */
export interface Found {
  value: DocumentValue;
  place: Place;
}

/** A part of a document that cannot be used, and with it the operations that need it. */
export class BrokenPartError extends Error {
  override readonly name = 'BrokenPartError';
  readonly place: Place;

  constructor(message: string, place: Place) {
    super(message);
    this.place = place;
  }
}

/** References that one reference may lead through. */
const MOST_HOPS = 32;

/** The files of a document, and references between them. Missing files are noted, so that the caller can fetch them. */
export class Files {
  readonly main: string;
  /** Files that a reference led to and that are not here (yet). */
  readonly missing = new Set<string>();
  readonly #read = new Map<string, ReadDocument>();
  readonly #unreadable = new Map<string, string>();
  readonly #limits: CompileLimits;
  #length = 0;

  /** Throws `UnreadableDocumentError` when the first file cannot be read. */
  constructor(main: string, text: string, limits: CompileLimits) {
    this.main = main;
    this.#limits = limits;
    this.#add(main, text);
  }

  get size(): number {
    return this.#read.size + this.#unreadable.size;
  }

  get root(): DocumentValue {
    return this.#read.get(this.main)?.value ?? null;
  }

  /** Adds a file. If it cannot be read, each reference to it reports that. */
  add(url: string, text: string): void {
    try {
      this.#add(url, text);
    } catch (error) {
      this.fail(url, error instanceof Error ? error.message : String(error));
    }
  }

  /** A file that cannot be had. */
  fail(url: string, why: string): void {
    this.#unreadable.set(url, why);
    this.missing.delete(url);
  }

  #add(url: string, text: string): void {
    this.#length += text.length;
    if (this.#length > this.#limits.documentBytes)
      throw new UnreadableDocumentError(
        `The files of the document are together longer than ${this.#limits.documentBytes} characters.`,
      );
    this.#read.set(url, readDocument(text, this.#limits));
    this.missing.delete(url);
  }

  /** What a `$ref` leads to. Throws `BrokenPartError` for nothing. */
  resolve(ref: string, from: Place): Found {
    const [path = '', fragment = ''] = ref.split('#', 2);
    const file = path === '' ? from.file : this.#fileAt(path, from);
    const read = this.#read.get(file);
    if (!read) throw this.#without(file, ref, from);
    const value = atPointer(read.value, fragment);
    if (value === undefined) throw new BrokenPartError(`The reference ${shown(ref)} leads to nothing.`, from);
    return { value, place: { file, pointer: fragment } };
  }

  /** `value`, or what its `$ref` leads to. For what is no schema. */
  follow(found: Found): Found {
    let at = found;
    for (let hops = 0; isObject(at.value) && typeof at.value.$ref === 'string'; hops += 1) {
      if (hops >= MOST_HOPS) throw new BrokenPartError('A reference leads on and on, or to itself.', found.place);
      at = this.resolve(at.value.$ref, at.place);
    }
    return at;
  }

  #fileAt(path: string, from: Place): string {
    try {
      const url = from.file === '' ? new URL(path) : new URL(path, from.file);
      return url.href;
    } catch {
      const message = `The reference ${shown(path)} is to another file, and where this one came from is not known.`;
      throw new BrokenPartError(message, from);
    }
  }

  #without(file: string, ref: string, from: Place): BrokenPartError {
    const why = this.#unreadable.get(file);
    if (why === undefined) this.missing.add(file);
    return new BrokenPartError(
      `The file of the reference ${shown(ref)} is not to be had${why === undefined ? '' : `: ${why}`}.`,
      from,
    );
  }

  /** What the files' readers noted. */
  problems(): Problem[] {
    return [...this.#read].flatMap(([file, { problems }]) =>
      problems.map((one) => (file === this.main ? one : { ...one, where: file })),
    );
  }

  /** Problems with the lines of their places. */
  withLines(problems: readonly { problem: Problem; place?: Place }[]): Problem[] {
    const byFile = Map.groupBy(problems, ({ place }) => place?.file);
    const lines = new Map<string, Map<string, number>>();
    for (const [file, those] of byFile)
      if (file !== undefined)
        lines.set(
          file,
          this.#read.get(file)?.linesOf(those.flatMap(({ place }) => (place ? [place.pointer] : []))) ?? new Map(),
        );
    return problems.map(({ problem, place }) => {
      const line = place && lines.get(place.file)?.get(place.pointer);
      const where = place && `${place.file === this.main ? '' : place.file}#${place.pointer}`;
      return {
        ...problem,
        ...(problem.where === undefined && where !== undefined ? { where } : {}),
        ...(line === undefined ? {} : { line }),
      };
    });
  }
}

const shown = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
