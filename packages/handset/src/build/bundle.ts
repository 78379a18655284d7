import { SourceMap, type SourceMapPayload } from 'node:module';
import type { SourceMapV3 } from '../plugins/plugin.ts';

/** One compiled source, ready to be joined with others; computed once per change of the source. */
export interface BundlePart {
  /** Project name of the source. */
  readonly source: string;
  readonly code: string;
  /** Newlines in `code`, which ends with one. */
  readonly lines: number;
  /** The part's source map as JSON. */
  readonly map: string | undefined;
  /** Whether it may give a name by `let`, `const` or `class`, which no other script of the page may give again. */
  readonly declaresOnce: boolean;
  /** The literal names that it calls `require` with. */
  readonly requires: readonly string[];
  /** Whether it uses the library of shortcuts by its older name. */
  readonly usesMwl: boolean;
}

/** A word of these where a statement may begin. */
const DECLARES_ONCE = /(?:^|[;{}/])[ \t]*(?:let|const|class)[\s[{]/m;

/** Before scripts that are joined: a "use strict" at the head of the first of them is not the head of all. */
export const SCRIPT_HEADER = ';\n';

/** Prepare a script: a semicolon on a line of its own keeps two files from running into one statement. */
export function scriptPart(source: string, output: string, map: SourceMapV3 | undefined): BundlePart {
  return part(source, `${output.trimEnd()}\n;\n`, map, DECLARES_ONCE.test(output));
}

/** Prepare a template function, stored in the global object `templates` under `name`. */
export function templatePart(source: string, name: string, output: string, map: SourceMapV3 | undefined): BundlePart {
  return part(source, `templates[${JSON.stringify(name)}] = ${output.trim()};\n`, map, false);
}

/** Prepare a style sheet. */
export function stylePart(source: string, output: string): BundlePart {
  return part(source, `${output.trimEnd()}\n`, undefined, false);
}

function part(source: string, code: string, map: SourceMapV3 | undefined, declaresOnce: boolean): BundlePart {
  return {
    source,
    code,
    lines: countNewlines(code),
    map: map && JSON.stringify(map),
    declaresOnce,
    requires: requiredNames(code),
    usesMwl: usesMwl(code),
  };
}

const REQUIRE = /(?<![\w$.])require\s*\(\s*(['"])([^'"\n]+)\1\s*\)/g;

/** The literal names that a script, or a page, calls `require` with. */
export function requiredNames(code: string): string[] {
  return [...code.matchAll(REQUIRE)].map(([, , name = '']) => name);
}

/** Whether a text calls a function of `mwl`, the name that the makers of the first such phones gave their library of shortcuts. */
export function usesMwl(text: string): boolean {
  return /\bmwl\.\w+\s*\(/.test(text);
}

export interface Bundle {
  readonly code: string;
  /** An index map (ECMA-426, "sections"): joining it costs no decoding, so that a rebuild stays cheap. */
  readonly map: string;
}

/** Join parts in their order; `header` is put before them. */
export function joinParts(file: string, parts: readonly BundlePart[], header = ''): Bundle {
  const sections: string[] = [];
  let line = countNewlines(header);
  for (const { lines, map } of parts) {
    if (map !== undefined) sections.push(`{"offset":{"line":${line},"column":0},"map":${map}}`);
    line += lines;
  }
  return {
    code: joinCode(parts, header),
    map: `{"version":3,"file":${JSON.stringify(file)},"sections":[${sections.join(',\n')}]}\n`,
  };
}

/** The code of joined parts, without their map. */
export function joinCode(parts: readonly BundlePart[], header: string): string {
  return header + parts.map((p) => p.code).join('');
}

/** The source of a place in joined code (line and column from 1), and its line there if that is known. */
export function sourcePlace(
  parts: readonly BundlePart[],
  header: string,
  { line = 0, column = 1 }: { readonly line?: number | undefined; readonly column?: number | undefined },
): { file: string; line: number | undefined } | undefined {
  let before = countNewlines(header);
  if (line <= before) return undefined;
  for (const part of parts) {
    if (line <= before + part.lines) {
      const map = part.map === undefined ? undefined : new SourceMap(JSON.parse(part.map) as SourceMapPayload);
      const entry = map?.findEntry(line - before - 1, column - 1);
      return { file: part.source, line: entry && 'originalLine' in entry ? entry.originalLine + 1 : undefined };
    }
    before += part.lines;
  }
  return undefined;
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
