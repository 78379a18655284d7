import { SourceMap, type SourceMapPayload } from 'node:module';

/** Where in the sources an error arose: the first line of its stack that a source map knows, as `file:line`. */
export function locate(stack: string, maps: ReadonlyMap<string, string>): string | undefined {
  for (const match of stack.matchAll(/http:\/\/localhost\/([^\s):]+):(\d+):(\d+)/g)) {
    const map = maps.get(match[1] ?? '');
    if (map === undefined) continue;
    const found = new SourceMap(JSON.parse(map) as SourceMapPayload).findEntry(
      Number(match[2]) - 1,
      Number(match[3]) - 1,
    );
    if ('originalSource' in found && found.originalSource) return `${found.originalSource}:${found.originalLine + 1}`;
  }
  return undefined;
}
