import { join } from 'node:path';
import ts from 'typescript';

/** Source with its types, as `npm run check` reads it. `sources`: files as they are, by path; `more`: texts in place of files, by the path that their imports are looked up from. */
export function sourceProgram(
  root: string,
  sources: readonly string[],
  more: ReadonlyMap<string, string> = new Map(),
): ts.Program {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (path) => more.has(path) || fileExists(path);
  host.readFile = (path) => more.get(path) ?? readFile(path);
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const text = more.get(path);
    return text === undefined
      ? getSourceFile(path, languageVersion, ...rest)
      : ts.createSourceFile(path, text, languageVersion, true);
  };
  return ts.createProgram([...sources, ...more.keys()], options, host);
}
