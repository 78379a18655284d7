import { open, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { orMissing } from '../../system-error.ts';
import { type LayerEntry, textFile } from '../formats/layer.ts';
import { type Planned, planFile } from '../formats/planned.ts';
import { readZip } from '../formats/zip.ts';
import { planTree } from './base-system.ts';
import type { PythonInterpreter } from './python-interpreters.ts';
import { sharedLibraries } from './shared-libraries.ts';

const ROOT = { uid: 0, gid: 0 };
const PYC_HEADER = 16;
const WHEEL_LIMITS = { zipBytes: 32 * 1024 ** 2, zipUnpackedBytes: 128 * 1024 ** 2, zipEntries: 10_000 };

/** Not for running programs: tests, the editor, build files; and what is the host's own (installed packages, its hooks). */
const LEFT_OUT =
  /(^|\/)(tests?|idle_test)(\/|$)|^(idlelib|turtledemo|site-packages|dist-packages|ensurepip\/_bundled|config-[^/]*)(\/|$)|^(sitecustomize\.py|usercustomize\.py|EXTERNALLY-MANAGED)$|\.(a|exe)$/;

/**
 * The interpreter at /usr/bin/python3.X, its standard library (compiled files included) and pip. Nothing that is installed
 * for the machine itself comes along. The interpreter finds its library from where it lies, so any prefix will do.
 */
export async function planPython(python: PythonInterpreter, system: ReadonlySet<string>): Promise<Planned[]> {
  const home = `usr/lib/python${python.version}`;
  const tree = await planTree(python.stdlib, home, (path) => !LEFT_OUT.test(path));
  const platform =
    python.platstdlib === python.stdlib
      ? []
      : await planTree(join(python.platstdlib, 'lib-dynload'), `${home}/lib-dynload`);
  const files = new Map([...tree, ...platform].map((plan) => [plan.entry.path, plan]));
  const modules = [...files.keys()].filter((path) => path.includes('/lib-dynload/') && path.endsWith('.so'));
  const sourceOf = (path: string): string =>
    path.startsWith(`${home}/lib-dynload/`) && platform.length > 0
      ? join(python.platstdlib, path.slice(home.length + 1))
      : join(python.stdlib, path.slice(home.length + 1));

  const { libraries, broken } = await sharedLibraries([python.executable, ...modules.map(sourceOf)]);
  for (const module of modules) if (broken.has(sourceOf(module))) files.delete(module);
  for (const path of [...files.keys()].filter((path) => path.endsWith('.pyc'))) {
    const compiled = await planCompiled(path, sourceOf(path));
    if (compiled) files.set(path, compiled);
    else files.delete(path);
  }
  const own = libraries.filter((library) => !system.has(library.path));
  return [
    ...files.values(),
    await planFile(`usr/bin/python${python.version}`, python.executable, 0o755),
    ...(await Promise.all(own.map((library) => planFile(library.path, library.source, 0o755)))),
    ...names(python, system),
    ...(await planPip(python)),
  ];
}

function names(python: PythonInterpreter, system: ReadonlySet<string>): Planned[] {
  const link = (path: string, target: string): LayerEntry => ({ type: 'symlink', path, target, ...ROOT });
  const entries = [link('usr/bin/python3', `python${python.version}`), link('usr/bin/python', 'python3')];
  const caFile = python.caFile.replace(/^\/+/, '');
  const elsewhere = caFile !== '' && !caFile.split('/').includes('..') && !system.has(caFile);
  if (elsewhere) entries.push(link(caFile, '/etc/ssl/certs/ca-certificates.crt'));
  return entries.map((entry) => ({ entry }));
}

async function planPip(python: PythonInterpreter): Promise<Planned[]> {
  const site = python.debian ? 'usr/lib/python3/dist-packages' : `usr/lib/python${python.version}/site-packages`;
  const plans: Planned[] = [];
  if (python.pipWheel !== undefined) {
    // Two megabytes: its content is kept, and the file is not held open until the layer is written.
    const version = await versionOf(python.pipWheel);
    using wheel = await readZip(python.pipWheel, WHEEL_LIMITS);
    for (const file of wheel.items) {
      if (file.type !== 'file') continue;
      const content = await buffer(file.open());
      const entry = textFile(`${site}/${file.path}`, content, ROOT);
      plans.push({ entry, version });
    }
  } else {
    for (const dir of python.pipDirs)
      plans.push(...(await planTree(dir, `${site}/${basename(dir)}`, (path) => !/(^|\/)__pycache__(\/|$)/.test(path))));
  }
  if (plans.length === 0) return [];
  const script = `#!/bin/sh\nexec python${python.version} -m pip "$@"\n`;
  return [...plans, ...['pip', 'pip3'].map((name) => ({ entry: textFile(`usr/bin/${name}`, script, ROOT, 0o755) }))];
}

/**
 * A compiled file whose source has not changed since, marked as valid without a look at the source's time (PEP 552,
 * unchecked): times in an image are not those of the machine. Undefined when it is stale or of a kind not known.
 */
async function planCompiled(path: string, source: string): Promise<Planned | undefined> {
  const match = /^(.*)\/__pycache__\/([^/]+?)\.cpython-\d+\.pyc$/.exec(source);
  const text = match ? await orMissing(stat(`${match[1]}/${match[2]}.py`)) : undefined;
  if (!text) return undefined;
  const real = await realpath(source);
  const header = Buffer.alloc(PYC_HEADER);
  const file = await open(real, 'r');
  try {
    const { bytesRead } = await file.read(header, 0, PYC_HEADER, 0);
    if (bytesRead < PYC_HEADER) return undefined;
  } finally {
    await file.close();
  }
  const fresh =
    header.readUInt32LE(4) === 0 &&
    header.readUInt32LE(8) === Math.floor(text.mtimeMs / 1000) >>> 0 &&
    header.readUInt32LE(12) === text.size;
  if (!fresh) return undefined;
  const info = await stat(real);
  const entry: LayerEntry = {
    type: 'file',
    path,
    mode: 0o644,
    size: info.size,
    ...ROOT,
    async *open() {
      const bytes = await readFile(real);
      bytes.writeUInt32LE(1, 4);
      bytes.fill(0, 8, PYC_HEADER);
      yield bytes;
    },
  };
  return { entry, version: `${info.size} ${info.mtimeMs}` };
}

async function versionOf(path: string): Promise<string> {
  const info = await stat(path);
  return `${info.size} ${info.mtimeMs}`;
}
