import type { DocumentValue } from '@agentplatform/contract';
import { type Compiled, nothingOf } from '../http-tools/compiled.ts';
import type { CredentialPlace, HttpTool } from '../http-tools/http-tool.ts';
import { isObject, own, pointerTo } from '../tools/json-pointer.ts';
import type { Problem } from '../tools/problem.ts';
import { toolNames } from '../tools/tool-names.ts';
import { BrokenPartError, Files, type Place } from './files.ts';
import { COMPILE_LIMITS, type CompileLimits } from './limits.ts';
import { type CompiledOperation, compileOperation, type OperationDeps } from './operation.ts';
import { UnreadableDocumentError } from './read-yaml.ts';
import { SchemaConverter } from './schemas.ts';
import { securitySchemes } from './security.ts';
import { idleParts, type OperationName, overrideOf, type ToolSelection, takes } from './selection.ts';

/** A document as it was given. */
export interface DocumentInput {
  /** JSON or YAML. */
  text: string;
  /** URL of the document, against which its relative servers and references are resolved. */
  baseUrl?: string;
}

export interface CompileOptions {
  /** Name of the target, which is part of the names that its tools are listed by. */
  target: string;
  /** Fetches a further file of the document; without it, references to other files are problems. */
  resolve?: (url: string) => Promise<string>;
  limits?: Partial<CompileLimits>;
  /** Where the target's own credentials go, besides where the document says: no argument may be sent there. */
  credentials?: readonly CredentialPlace[];
  /** The operations that become tools; all of them by default. */
  selection?: ToolSelection;
}

/** How often missing files are fetched, each time those that the last ones refer to. */
const MOST_ROUNDS = 12;

/**
 * Makes a tool of each operation of an OpenAPI document (3.0 or 3.1). It never throws for what a document holds: what is broken is a
 * problem with its line and costs the operations that need it, and only those. Documents of anybody belong in `compileInWorker`.
 */
export async function compileOpenApi(input: DocumentInput, options: CompileOptions): Promise<Compiled> {
  const limits = { ...COMPILE_LIMITS, ...options.limits };
  let files: Files;
  try {
    files = new Files(input.baseUrl ?? '', input.text, limits);
  } catch (error) {
    if (!(error instanceof UnreadableDocumentError)) throw error;
    return nothingOf([
      { severity: 'error', message: error.message, ...(error.line === undefined ? {} : { line: error.line }) },
    ]);
  }
  for (let round = 0; ; round += 1) {
    const compiled = new Compilation(files, input, options, limits).compile();
    if (files.missing.size === 0) return compiled;
    for (const url of files.missing) await fetchInto(files, url, round, options, limits);
  }
}

async function fetchInto(
  files: Files,
  url: string,
  round: number,
  { resolve }: CompileOptions,
  limits: CompileLimits,
): Promise<void> {
  if (!resolve) return files.fail(url, 'references to other files are not followed here');
  if (round >= MOST_ROUNDS || files.size >= limits.files)
    return files.fail(url, `a document may have ${limits.files} files`);
  try {
    files.add(url, await resolve(url));
  } catch (error) {
    files.fail(url, error instanceof Error ? error.message : String(error));
  }
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

interface Noted {
  problem: Problem;
  place?: Place;
}

/** One operation of the document, and where it stands. */
interface Listed extends OperationName {
  place: Place;
  /** Its object, and its path's. */
  operation: DocumentValue;
  item: { value: { [key: string]: DocumentValue | undefined }; place: Place };
}

/** One pass over the files that are here. */
class Compilation {
  readonly #files: Files;
  readonly #input: DocumentInput;
  readonly #options: CompileOptions;
  readonly #limits: CompileLimits;
  readonly #noted: Noted[] = [];
  readonly #leftOut: { operation: string; why: string }[] = [];
  #operations = 0;

  constructor(files: Files, input: DocumentInput, options: CompileOptions, limits: CompileLimits) {
    this.#files = files;
    this.#input = input;
    this.#options = options;
    this.#limits = limits;
  }

  compile(): Compiled {
    const { root } = this.#files;
    const version = isObject(root) ? root.openapi : undefined;
    if (!isObject(root) || typeof version !== 'string' || !/^3\.[01](?:\.|$)/.test(version))
      return nothingOf([...this.#files.problems(), { severity: 'error', message: wrongVersion(root) }]);
    const schemes = securitySchemes(root, this.#files);
    const credentials = schemes.map(({ in: place, name }) => ({ in: place, name }));
    const is30 = version.startsWith('3.0');
    const warn = (message: string, place: Place): void => this.#note('warning', message, place);
    const shared = { files: this.#files, is30, limits: this.#limits, warn };
    const deps: OperationDeps = {
      ...shared,
      input: new SchemaConverter({ ...shared, direction: 'input' }),
      output: new SchemaConverter({ ...shared, direction: 'output' }),
      baseUrl: this.#input.baseUrl,
      root,
      credentials: [...credentials, ...(this.#options.credentials ?? [])],
      schemes,
      selection: this.#options.selection,
    };
    const listed = this.#list(root);
    const compiled = listed.flatMap((one) => this.#operation(one, deps));
    const tools = this.#named(compiled);
    this.#summary(compiled, listed);
    const problems = [...this.#files.problems(), ...this.#files.withLines(this.#noted)];
    return { tools, problems, operations: this.#operations, leftOut: this.#leftOut, credentials };
  }

  #note(severity: Problem['severity'], message: string, place?: Place, where?: string): void {
    this.#noted.push({
      problem: { severity, message, ...(where === undefined ? {} : { where }) },
      ...(place ? { place } : {}),
    });
  }

  #leaveOut({ method, path }: OperationName, why: string): void {
    this.#leftOut.push({ operation: `${method} ${path}`, why });
  }

  /** The operations of the document that can be compiled; all are counted. */
  #list(root: DocumentValue): Listed[] {
    const paths = isObject(root) && isObject(root.paths) ? root.paths : {};
    if (isObject(root) && !isObject(root.paths)) this.#note('error', 'The document has no paths.');
    return Object.entries(paths).flatMap(([path, value]) =>
      path.startsWith('x-') ? [] : this.#listPath(path, value ?? null),
    );
  }

  #listPath(path: string, value: DocumentValue): Listed[] {
    const place = { file: this.#files.main, pointer: pointerTo('/paths', path) };
    let found: { value: DocumentValue; place: Place };
    try {
      found = this.#files.follow({ value, place });
      if (!isObject(found.value)) throw new BrokenPartError('The path is not an object.', place);
    } catch (error) {
      if (!(error instanceof BrokenPartError)) throw error;
      this.#note('error', error.message, error.place);
      return [];
    }
    // Members beside a `$ref` of the path replace members of the referenced item.
    const beside = isObject(value) && found.place !== place ? value : {};
    const item = { value: { ...(isObject(found.value) ? found.value : {}), ...beside }, place: found.place };
    return METHODS.flatMap((method): Listed[] => {
      const operation = own(item.value, method);
      if (operation === undefined) return [];
      this.#operations += 1;
      const at = own(beside, method) === undefined ? found.place : place;
      const listed = {
        method: method.toUpperCase(),
        path,
        operation,
        item,
        place: { ...at, pointer: pointerTo(at.pointer, method) },
      };
      if (this.#operations <= this.#limits.operations) return [listed];
      this.#leaveOut(listed, `The document has more than ${this.#limits.operations} operations.`);
      return [];
    });
  }

  #operation(listed: Listed, deps: OperationDeps): CompiledOperation[] {
    const { selection } = this.#options;
    if (selection && !selection.toolFilters.some((filter) => takes(filter, listed))) {
      this.#leaveOut(listed, 'No filter takes it.');
      return [];
    }
    try {
      return [compileOperation(listed, deps, selection && overrideOf(selection, listed))];
    } catch (error) {
      if (!(error instanceof BrokenPartError)) throw error;
      this.#leaveOut(listed, error.message);
      this.#note('error', `${listed.method} ${listed.path} is left out: ${error.message}`, error.place);
      return [];
    }
  }

  /** The tools by their names, as many as fit. */
  #named(compiled: readonly CompiledOperation[]): HttpTool[] {
    const { names, problems } = toolNames(
      compiled.map(({ key, wantedName }) => ({ key, name: wantedName })),
      this.#options.target,
    );
    for (const problem of problems) this.#noted.push({ problem });
    let bytes = 0;
    return compiled.flatMap(({ key, tool, bytes: of, method, path }): HttpTool[] => {
      const name = names.get(key);
      bytes += of;
      if (name !== undefined && bytes <= this.#limits.toolsBytes) return [{ ...tool, name }];
      const why =
        name === undefined
          ? 'The name of the target leaves no room for names of tools.'
          : `The tools are together larger than ${this.#limits.toolsBytes} bytes.`;
      this.#leaveOut({ method, path }, why);
      return [];
    });
  }

  #summary(compiled: readonly CompiledOperation[], listed: readonly Listed[]): void {
    const large = compiled.filter(({ outputTooLarge }) => outputTooLarge).length;
    if (large > 0)
      this.#note(
        'warning',
        `${large} tools have no output schema, since it would be larger than ${this.#limits.outputSchemaBytes} bytes.`,
      );
    if (this.#operations > this.#limits.operations)
      this.#note('error', `The document has more than ${this.#limits.operations} operations.`);
    if (this.#options.selection)
      for (const message of idleParts(this.#options.selection, listed)) this.#note('error', message);
  }
}

function wrongVersion(root: DocumentValue): string {
  const said = isObject(root) ? (root.openapi ?? root.swagger) : undefined;
  if (said === undefined) return 'This is not an OpenAPI document: it has no member "openapi" at its top.';
  return `OpenAPI 3.0 and 3.1 are read, not ${JSON.stringify(said).slice(0, 50)}.`;
}
