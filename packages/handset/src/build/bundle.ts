import type { SourceMapV3 } from '../plugins/plugin.ts';

/** One compiled source, ready to be joined with others; computed once per change of the source. */
export interface BundlePart {
  readonly code: string;
  /** Newlines in `code`, which ends with one. */
  readonly lines: number;
  /** The part's source map as JSON. */
  readonly map: string | undefined;
}

/** Prepare a script: a semicolon on a line of its own keeps two files from running into one statement. */
export function scriptPart(output: string, map: SourceMapV3 | undefined): BundlePart {
  return part(`${output.trimEnd()}\n;\n`, map);
}

/** Prepare a template function, stored in the global object `templates` under `name`. */
export function templatePart(name: string, output: string, map: SourceMapV3 | undefined): BundlePart {
  return part(`templates[${JSON.stringify(name)}] = ${output.trim()};\n`, map);
}

function part(code: string, map: SourceMapV3 | undefined): BundlePart {
  return { code, lines: countNewlines(code), map: map && JSON.stringify(map) };
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
    code: header + parts.map((p) => p.code).join(''),
    map: `{"version":3,"file":${JSON.stringify(file)},"sections":[${sections.join(',\n')}]}\n`,
  };
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
