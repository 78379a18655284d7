import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

const INCLUDES = /^(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)$/;
/** A path, an editable package, a folder of wheels, or an archive. */
const LOCAL = /^(?:-e|--editable|-f|--find-links|[./~])|(?:^|@\s*)file:|^(?!.*:\/\/).*\.(?:whl|zip|tar\.gz)\b/;

export interface Requirements {
  /** Of `requirements.txt` and every file that it includes, in the order in which they are named. */
  texts: string[];
  /** Whether it names files of this machine, whose content may change while the text does not. */
  local: boolean;
}

/** Reads a requirements file with those that it includes by `-r` and `-c`; undefined when it is missing or names nothing. */
export async function readRequirements(path: string): Promise<Requirements | undefined> {
  const found: Requirements = { texts: [], local: false };
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
      if (included !== undefined && !included.includes('://'))
        names = (await read(resolve(dirname(file), included))) || names;
      else {
        names = true;
        found.local ||= LOCAL.test(line);
      }
    }
    return names;
  };
  return (await read(path)) ? found : undefined;
}
