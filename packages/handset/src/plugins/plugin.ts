/** What a compiled source is for: part of a script, a function that returns HTML, a finished page, or part of a style sheet. */
export type CompileTarget = 'script' | 'template' | 'page' | 'style';

export interface CompileRequest {
  /** Project name of the source, such as `app/templates/main-list.pug`. */
  readonly path: string;
  readonly text: string;
  readonly target: CompileTarget;
  /**
   * Text of another source by its project name. Every name read becomes a dependency, also one that is missing:
   * when it changes or appears, this source is compiled again. Throws a ProblemError.
   */
  readonly read: (path: string) => string;
}

/** A version 3 source map whose only source is the file that was compiled. */
export interface SourceMapV3 {
  readonly version: 3;
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly names: readonly string[];
  readonly mappings: string;
}

export interface CompileResult {
  /** `script`: statements in ES5; `template`: one function expression `(locals) -> string`; `page`: HTML; `style`: CSS. */
  readonly output: string;
  /** Project names of further files that the output depends on and that were not taken through `read`. */
  readonly dependencies?: readonly string[];
  readonly map?: SourceMapV3 | undefined;
}

/** A language. One file that exports `plugin` adds one (see `plugins` in handset.config.json). */
export interface CompilePlugin {
  readonly name: string;
  /** With the dot, in lower case, such as `.coffee`; of two parts only `.coffee.md`. */
  readonly extensions: readonly string[];
  readonly targets: readonly CompileTarget[];
  /** Compile one source. Throw a ProblemError, or an Error with `line` and `column` (1-based), for a fault in the source. */
  compile(request: CompileRequest): CompileResult | Promise<CompileResult>;
}
