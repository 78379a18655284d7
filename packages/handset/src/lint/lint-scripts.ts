import { SourceMap, type SourceMapPayload } from 'node:module';
import { compileSource } from '../build/compiler.ts';
import type { Output } from '../build/output.ts';
import { type Role, roleOf } from '../build/roles.ts';
import type { SourceStore } from '../build/source-store.ts';
import { codeFrame } from '../code-frame.ts';
import type { SourceMapV3 } from '../plugins/plugin.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import type { Problem } from '../problem.ts';
import { compareNames } from '../project/paths.ts';
import type { LintScript } from './es5.ts';
import { elementsOf } from './page.ts';

const KINDS: Partial<Record<Role, LintScript['kind']>> = { script: 'file', template: 'template', vendor: 'vendor' };

/** All JavaScript of an application: its sources compiled, scripts of themes, and what stands in the page itself. */
export async function lintScripts(
  store: SourceStore,
  plugins: PluginRegistry,
  outputs: ReadonlyMap<string, Output>,
): Promise<{ scripts: LintScript[]; problems: Problem[] }> {
  const scripts: LintScript[] = [];
  const problems: Problem[] = [];
  for (const name of [...store.names()].sort(compareNames)) {
    const isThemeScript = name.startsWith('app/assets/') && name.endsWith('.js') && !name.endsWith('.min.js');
    const kind = isThemeScript ? 'theme' : KINDS[roleOf(name, plugins)];
    if (kind === undefined) continue;
    const target = kind === 'template' ? 'template' : 'script';
    const compiled = await compileSource(name, target, plugins, store);
    if (!compiled.ok) problems.push(compiled.problem);
    else {
      const { output, map } = compiled.result;
      const texts = textsOf(store, [name, ...compiled.dependencies]);
      scripts.push({
        kind,
        code: output,
        ...(kind === 'template' ? bySearch(texts) : byMap(name, store.text(name), map)),
      });
    }
  }
  const page = outputs.get('index.html');
  if (page) {
    const compiled = plugins.find(page.source) && (await compileSource(page.source, 'page', plugins, store));
    const place = bySearch(textsOf(store, [page.source, ...(compiled?.dependencies ?? [])]));
    const html = Buffer.from(page.read()).toString('utf8');
    for (const code of inlineScripts(html)) scripts.push({ kind: 'inline', code, ...place });
  }
  return { scripts, problems };
}

type Placing = Pick<LintScript, 'place' | 'sourceLine'>;

function byMap(file: string, text: string, map: SourceMapV3 | undefined): Placing {
  const found = map && new SourceMap({ ...map, file, sourceRoot: '' } as unknown as SourceMapPayload);
  return {
    place(generated, column) {
      const entry = found?.findEntry(generated - 1, column);
      const line = entry && 'originalLine' in entry ? entry.originalLine + 1 : generated;
      return { file, line, frame: codeFrame(text, line) };
    },
    sourceLine: (_file, line) => lineOf(text, line),
  };
}

interface SourceText {
  readonly file: string;
  readonly text: string;
}

function textsOf(store: SourceStore, names: readonly string[]): SourceText[] {
  return names.filter((file) => store.has(file)).map((file) => ({ file, text: store.text(file) }));
}

/** For what has no map by line: the first line of the source, or of what it includes, that holds the words. */
function bySearch(sources: readonly SourceText[]): Placing {
  return {
    place(_line, _column, words) {
      for (let length = words.length; length > 0; length = Math.floor(length / 2)) {
        for (const source of sources) {
          const at = source.text.indexOf(words.slice(0, length));
          if (at === -1) continue;
          const line = source.text.slice(0, at).split('\n').length;
          return { file: source.file, line, frame: codeFrame(source.text, line) };
        }
        // Less than this stands anywhere.
        if (length < 4) break;
      }
      return { file: sources[0]?.file };
    },
    sourceLine: (file, line) => lineOf(sources.find((source) => source.file === file)?.text ?? '', line),
  };
}

function lineOf(text: string, line: number): string {
  return text.split(/\r\n|\r|\n/)[line - 1] ?? '';
}

/** The scripts that stand in a page: `<script>` without `src`, and handlers such as `onclick`, each as a function. */
function* inlineScripts(html: string): Iterable<string> {
  for (const element of elementsOf(html)) {
    const attribute = (name: string): string | undefined => element.attrs.find((a) => a.name === name)?.value;
    const isScript = /^(|(text|application)\/(x-)?(java|ecma)script|module)$/i.test(attribute('type') ?? '');
    if (element.tagName === 'script' && attribute('src') === undefined && isScript) {
      yield element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
    }
    for (const { name, value } of element.attrs) if (/^on[a-z]+$/.test(name)) yield `(function (event) {${value}\n})`;
  }
}
