import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from '../cli-error.ts';

const INCLUDES = /^(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)$/;
/** What may change while its line stays: a path, a folder of wheels, an archive, or a repository. */
const CHANGEABLE =
  /^(?:-f|--find-links|[./~])|(?:^|@\s*)(?:file:|(?:git|hg|svn|bzr)\+)|^(?!.*:\/\/).*\.(?:whl|zip|tar\.gz)\b/;
const EDITABLE = /^(?:-e|--editable)\b/;
const OPTION = /^(?:-f|--find-links)[\s=]*/;
/** What a build leaves behind in the folder that it builds. */
const LEFT_BEHIND = /^(?:\..*|__pycache__|node_modules|.*\.egg-info)$/;

export interface Requirements {
  /** Of `requirements.txt` and every file that it includes, in the order in which they are named, and of the content of what they name on this machine. */
  texts: string[];
  /** Whether it names something that is not there to be read, such as a branch of a repository: it may change while the texts do not. */
  moving: boolean;
}

/**
 * Reads a requirements file with those that it includes by `-r` and `-c`; undefined when it is missing or names nothing. Rejects with a
 * `CliError` (usage) for an editable package: pip makes a link to this machine of it, which leads nowhere in a sandbox.
 */
export async function readRequirements(path: string): Promise<Requirements | undefined> {
  const found: Requirements = { texts: [], moving: false };
  const seen = new Set<string>();
  /** Whether anything is named in it. */
  const read = async (file: string): Promise<boolean> => {
    if (seen.has(file)) return false;
    seen.add(file);
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      // pip says better which file names one that is missing.
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    found.texts.push(text);
    let names = false;
    for (const line of text.split('\n').map((one) => one.replace(/(^|\s)#.*/, '').trim())) {
      if (line === '') continue;
      const included = INCLUDES.exec(line)?.[1];
      if (included !== undefined && !included.includes('://')) {
        names = (await read(resolve(dirname(file), included))) || names;
        continue;
      }
      names = true;
      if (EDITABLE.test(line)) throw editable(line, file);
      if (!CHANGEABLE.test(line)) continue;
      // pip looks where it runs, and for folders of wheels beside the file first.
      const contents = await Promise.all([...new Set([dirname(file), dirname(path)])].map((at) => contentOf(line, at)));
      const known = contents.filter((content) => content !== undefined);
      found.texts.push(...known);
      found.moving ||= known.length === 0;
    }
    return names;
  };
  return (await read(path)) ? found : undefined;
}

function editable(line: string, file: string): CliError {
  return new CliError(
    'usage',
    `${basename(file)} says "${line}". An editable package is a link to this machine, and an agent in a sandbox cannot follow it.`,
    `Write it without the option, so that it is installed as a copy: ${line.replace(/^(?:-e|--editable)[\s=]*/, '')}`,
  );
}

/** A hash of the file or folder that a line names, seen from `folder`; undefined where there is none. */
async function contentOf(line: string, folder: string): Promise<string | undefined> {
  const place = line
    .replace(OPTION, '')
    .replace(/^.*?@\s*(?=file:|\w+\+)/, '')
    .replace(/\s.*$/, '')
    .replace(/\[[^\]]*\]$/, '');
  const hash = createHash('sha256');
  try {
    const path = place.startsWith('file:') ? fileURLToPath(place) : resolve(folder, place);
    if ((await stat(path)).isDirectory()) for (const name of await filesBelow(path)) await add(hash, path, name);
    else await add(hash, dirname(path), path.slice(dirname(path).length + 1));
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
  return hash.digest('hex');
}

async function add(hash: ReturnType<typeof createHash>, folder: string, name: string): Promise<void> {
  const path = join(folder, name);
  hash.update(`${name}\0${(await stat(path)).size}\0`);
  for await (const part of createReadStream(path)) hash.update(part);
}

/** In sorted order; without what a build leaves behind, which would be another content after each. */
async function filesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  const walk = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      if (LEFT_BEHIND.test(entry.name) || (below === '' && entry.name === 'build')) continue;
      const name = join(below, entry.name);
      if (entry.isDirectory()) await walk(name);
      else if (entry.isFile()) found.push(name);
    }
  };
  await walk('');
  return found.sort();
}
