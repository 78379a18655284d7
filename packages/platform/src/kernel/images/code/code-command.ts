import type { ZipItem } from '../formats/zip.ts';
import { ImageError } from '../images.ts';

/** How code of one runtime is run. */
export interface CodeRuntime {
  /** As on the wire: `PYTHON_3_11`. */
  name: string;
  /** The base image: `python:3.11`. */
  base: string;
  language: 'python' | 'node';
  interpreter: string;
  env: Readonly<Record<string, string>>;
}

const PATH = '/var/task/bin:/usr/local/bin:/usr/bin:/bin';

/** The runtimes of the wire API's `codeConfiguration`. */
export const CODE_RUNTIMES: readonly CodeRuntime[] = [
  ...['10', '11', '12', '13', '14'].map((minor) => ({
    name: `PYTHON_3_${minor}`,
    base: `python:3.${minor}`,
    language: 'python' as const,
    interpreter: 'python3',
    // Dependencies lie beside the code (`pip install --target`).
    env: { PATH, PYTHONPATH: '/var/task', PYTHONUNBUFFERED: '1' },
  })),
  node('22'),
];

/** Those of functions, which the wire names otherwise (`functions/function-runtimes.ts`). */
const OTHER_RUNTIMES: readonly CodeRuntime[] = [node('24')];

function node(major: string): CodeRuntime {
  return { name: `NODE_${major}`, base: `node:${major}`, language: 'node', interpreter: 'node', env: { PATH } };
}

const SCRIPTS = { python: /\.py$/, node: /\.[cm]?[jt]s$/ };
const INTERPRETERS = { python: /^python(3(\.\d+)?)?$/, node: /^node$/ };
const INSTRUMENT = 'opentelemetry-instrument';
const INSTRUMENT_PACKAGE = 'opentelemetry/instrumentation/auto_instrumentation/__init__.py';
const RUN_INSTRUMENT =
  'import sys; from opentelemetry.instrumentation.auto_instrumentation import run; sys.argv[0] = "opentelemetry-instrument"; sys.exit(run())';

/** Throws `ImageError('runtime-unavailable')` naming those that exist. */
export function codeRuntime(name: string): CodeRuntime {
  const runtime = [...CODE_RUNTIMES, ...OTHER_RUNTIMES].find((known) => known.name === name);
  if (runtime) return runtime;
  const names = CODE_RUNTIMES.map((known) => known.name).join(', ');
  throw new ImageError('runtime-unavailable', `"${name.slice(0, 60)}" is not a code runtime; there are ${names}.`);
}

/**
 * The command for an entry point of the wire API, one or two parts: a script, or a program that runs a script
 * (`["opentelemetry-instrument", "main.py"]`). The program is an interpreter's name or a file in `bin/` of the zip. Throws
 * `ImageError('invalid')` when what it names is not in the zip.
 */
export function codeCommand(runtime: CodeRuntime, entryPoint: readonly string[], items: readonly ZipItem[]): string[] {
  const [first, second, ...more] = entryPoint;
  if (first === undefined || first === '' || more.length > 0 || entryPoint.some((part) => part.includes('\0'))) {
    throw new ImageError('invalid', 'entryPoint must have one or two parts, for example ["main.py"].');
  }
  const { interpreter } = runtime;
  if (SCRIPTS[runtime.language].test(first)) {
    return [interpreter, requireScript(first, items), ...(second === undefined ? [] : [second])];
  }
  const isScript = second !== undefined && SCRIPTS[runtime.language].test(second);
  const argument = second === undefined ? [] : [isScript ? requireScript(second, items) : second];
  if (INTERPRETERS[runtime.language].test(first)) {
    if (argument.length === 0) throw new ImageError('invalid', `entryPoint ["${first}"] names no script to run.`);
    return [interpreter, ...argument];
  }
  // A launcher runs a program, so the script goes to it with its interpreter.
  return [...launcher(runtime, first, items), ...(isScript ? [interpreter] : []), ...argument];
}

function launcher(runtime: CodeRuntime, name: string, items: readonly ZipItem[]): string[] {
  const file = (path: string): boolean => items.some((item) => item.path === path && item.type !== 'directory');
  const plain = /^[A-Za-z0-9._-]+$/.test(name);
  if (runtime.language === 'python' && plain) {
    // A script that pip made begins with the path of the Python that made it, which is not here.
    if (file(`bin/${name}`)) return [runtime.interpreter, `/var/task/bin/${name}`];
    if (name === INSTRUMENT && file(INSTRUMENT_PACKAGE)) return [runtime.interpreter, '-c', RUN_INSTRUMENT];
    if (name === INSTRUMENT) {
      throw new ImageError(
        'invalid',
        `entryPoint names ${INSTRUMENT}, but the zip does not hold it; add aws-opentelemetry-distro to its dependencies.`,
      );
    }
  }
  if (runtime.language === 'node' && plain && file(`node_modules/.bin/${name}`))
    return [runtime.interpreter, `node_modules/.bin/${name}`];
  const path = relativePath(name);
  if (path !== undefined && file(path)) return [`/var/task/${path}`];
  const example = runtime.language === 'python' ? 'main.py' : 'index.js';
  throw new ImageError(
    'invalid',
    `entryPoint names "${name.slice(0, 100)}", which is neither in the zip nor a script for ${runtime.name}; use for example ["${example}"].`,
  );
}

function requireScript(name: string, items: readonly ZipItem[]): string {
  const path = relativePath(name);
  const files = items.filter((item) => item.type !== 'directory').map((item) => item.path);
  if (path !== undefined && files.includes(path)) return path;
  const deeper = path === undefined ? undefined : files.find((file) => file.endsWith(`/${path}`));
  const hint =
    deeper === undefined
      ? `it holds ${files.slice(0, 8).join(', ') || 'no files'}${files.length > 8 ? ' …' : ''}`
      : `there is ${deeper}: zip what is inside the folder, not the folder, or name it "${deeper}"`;
  throw new ImageError('invalid', `entryPoint names "${name.slice(0, 200)}", which is not in the zip; ${hint}.`);
}

function relativePath(name: string): string | undefined {
  if (name.startsWith('/')) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') || parts.length === 0 ? undefined : parts.join('/');
}
