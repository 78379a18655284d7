import path from 'node:path';
import { ProblemError } from '../problem.ts';
import { loadCompiler } from './compilers.ts';
import { fromOldJade } from './old-jade.ts';
import type { CompilePlugin, CompileRequest } from './plugin.ts';

/** Jade-style templates by Pug. Templates call the runtime in vendor/pug_runtime.js as the global `pug`. */
export function createPugPlugin(): CompilePlugin {
  let compiler: ReturnType<typeof loadCompiler<'pug'>> | undefined;
  return {
    name: 'pug',
    extensions: ['.pug', '.jade'],
    targets: ['template', 'page'],
    compile(request) {
      compiler ??= loadCompiler('pug');
      const options = {
        filename: request.path,
        basedir: 'app',
        compileDebug: false,
        plugins: [createLoader(request)],
      };
      let render: (locals: object) => string;
      try {
        const text = pugText(request.path, request.text);
        if (request.target === 'template') {
          return {
            output: compiler.compileClient(text, {
              ...options,
              name: 'template',
              inlineRuntimeFunctions: false,
            }),
            map: startMap(request),
          };
        }
        render = compiler.compile(text, options);
      } catch (error) {
        throw pugProblem(error, request.path);
      }
      try {
        return { output: `${render({})}\n` };
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new ProblemError('page-render', {
          file: request.path,
          message: `The page cannot be rendered: ${message}.`,
        });
      }
    },
  };
}

/** A template as Pug reads it: `.jade` may be in Jade's older syntax. */
function pugText(name: string, text: string): string {
  return name.endsWith('.jade') ? fromOldJade(text) : text;
}

/** Resolves includes by project names (the same on every system), and refuses circles and files outside app/. */
function createLoader(request: CompileRequest) {
  const includes = new Map<string, Set<string>>();
  const reaches = (from: string, to: string): string[] | undefined => {
    if (from === to) return [from];
    for (const next of includes.get(from) ?? []) {
      const rest = reaches(next, to);
      if (rest) return [from, ...rest];
    }
    return undefined;
  };
  return {
    // The parser writes to the terminal about each include that ends in `.jade`, which is what Jade means without an ending.
    postLex: (tokens: readonly { type: string; val?: string }[], { filename }: { readonly filename: string }) =>
      tokens.map((token) => {
        if (token.type !== 'path') return token;
        const wanted = token.val?.trim() ?? '';
        const name = filename.endsWith('.jade') && path.posix.extname(wanted) === '' ? `${wanted}.jade` : wanted;
        return name.endsWith('.jade') ? { ...token, val: name + HIDES_JADE } : token;
      }),
    resolve(wanted: string, from: string): string {
      const name = withoutMark(wanted).trim().replaceAll('\\', '/');
      const resolved = path.posix.join(name.startsWith('/') ? 'app' : path.posix.dirname(from), name);
      if (!resolved.startsWith('app/')) {
        throw new ProblemError('include-outside', { file: from, message: `The include "${name}" leads outside app/.` });
      }
      const circle = reaches(resolved, from);
      if (circle) {
        const chain = [from, ...circle].join(' → ');
        throw new ProblemError('template-cycle', { file: from, message: `The template includes itself: ${chain}.` });
      }
      includes.set(from, (includes.get(from) ?? new Set()).add(resolved));
      return resolved;
    },
    read: (name: string): string => pugText(name, request.read(name)),
  };
}

/** Behind the path of an include that ends in `.jade`, between the lexer and the loader. */
const HIDES_JADE = '.pug';

function withoutMark(path: string): string {
  return path.endsWith(`.jade${HIDES_JADE}`) ? path.slice(0, -HIDES_JADE.length) : path;
}

function pugProblem(error: unknown, file: string): unknown {
  if (!(error instanceof Error)) return error;
  // The loader notes where the include stands at the end of the message.
  const at = /\n {4}at (.+) line (\d+)/.exec(error.message);
  const includedFrom = at && { file: at[1] ?? file, line: Number(at[2]) };
  if (error instanceof ProblemError) {
    const { code, message, remedy, file: own } = error.problem;
    if (code === 'include-missing' || code === 'include-outside' || code === 'template-cycle') {
      return new ProblemError(code, { message, remedy, file, ...includedFrom });
    }
    return new ProblemError(code, { ...error.problem, file: own });
  }
  if (!('msg' in error)) return error;
  const fault = error as Error & { msg: string; line?: number; column?: number; filename?: string };
  return new ProblemError('template-syntax', {
    file: fault.filename ?? file,
    line: fault.line,
    column: fault.column,
    message: fault.msg,
  });
}

/** Pug writes no source maps: the whole function points at the start of its template, enough to open the right file. */
function startMap({ path: source, text }: CompileRequest) {
  return { version: 3 as const, sources: [source], sourcesContent: [text], names: [], mappings: 'AAAA' };
}
