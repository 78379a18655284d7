import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { parse } from 'smol-toml';
import { ZipFile } from 'yazl';
import type { Package } from './package-shelf.ts';

/** What is read of `pyproject.toml`. */
interface Project {
  name: string;
  version: string;
  description: string;
  license: string;
  'requires-python': string;
  dependencies: string[];
  classifiers: string[];
  'optional-dependencies': Record<string, string[]>;
}

/**
 * The wheel of a project in pure Python whose package is `src/<name>` (Binary distribution format, PyPA). Made without Python and its build tools, which the
 * platform's machine may lack.
 */
export async function pythonWheel(source: string): Promise<Package> {
  const text = (name: string): Promise<string> => readFile(join(source, name), 'utf8');
  const { project } = parse(await text('pyproject.toml')) as unknown as { project: Project };
  const { name, version } = project;
  const about = `${name}-${version}.dist-info`;
  const files = new Map<string, Buffer>();
  for (const path of await sourcesOf(join(source, 'src', name)))
    files.set(relative(join(source, 'src'), path), await readFile(path));
  files.set(`${about}/METADATA`, Buffer.from(metadata(project, await text('README.md'))));
  files.set(`${about}/WHEEL`, Buffer.from(WHEEL));
  files.set(`${about}/licenses/LICENSE`, Buffer.from(await text('LICENSE')));
  const record = [...files].map(([path, bytes]) => `${path},sha256=${digest(bytes)},${bytes.length}\n`);
  files.set(`${about}/RECORD`, Buffer.from(`${record.join('')}${about}/RECORD,,\n`));
  return { fileName: `${name}-${version}-py3-none-any.whl`, bytes: await zip(files) };
}

const WHEEL = 'Wheel-Version: 1.0\nGenerator: agentplatform\nRoot-Is-Purelib: true\nTag: py3-none-any\n';

/** What Python has compiled there is not of the source. */
async function sourcesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter(({ name }) => name.endsWith('.py') || name === 'py.typed')
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

/** Core metadata (PyPA). */
function metadata(project: Project, readme: string): string {
  const lines = [
    'Metadata-Version: 2.4',
    `Name: ${project.name}`,
    `Version: ${project.version}`,
    `Summary: ${project.description}`,
    `License-Expression: ${project.license}`,
    'License-File: LICENSE',
    ...project.classifiers.map((one) => `Classifier: ${one}`),
    `Requires-Python: ${project['requires-python']}`,
    ...project.dependencies.map((one) => `Requires-Dist: ${one}`),
    ...Object.entries(project['optional-dependencies']).flatMap(([extra, needed]) => [
      `Provides-Extra: ${extra}`,
      ...needed.map((one) => `Requires-Dist: ${one}; extra == '${extra}'`),
    ]),
    'Description-Content-Type: text/markdown',
  ];
  return `${lines.join('\n')}\n\n${readme}`;
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

function zip(files: ReadonlyMap<string, Buffer>): Promise<Buffer> {
  const archive = new ZipFile();
  // The earliest that a zip can say; the same bytes for the same files.
  for (const [path, bytes] of files) archive.addBuffer(bytes, path, { mtime: new Date(1980, 0, 1), mode: 0o100644 });
  archive.end();
  return buffer(archive.outputStream);
}
