import { posix } from 'node:path';
import { placed, words } from './instruction-values.ts';
import { type Instruction, jsonTexts, lineError } from './instructions.ts';
import { expand, type Lookup } from './words.ts';

export interface Owner {
  uid: number;
  gid: number;
}

/** A COPY or ADD of files of the build context; each becomes a layer. */
export interface CopyStep {
  kind: 'copy';
  line: number;
  sources: string[];
  /** Absolute, without a slash at its end. */
  target: string;
  /** Whether the text says that the target is a folder. */
  intoFolder: boolean;
  owner: Owner;
  /** Permission bits of every file and folder, when the file says so. */
  mode: number | undefined;
}

/** What to do about an instruction that cannot be carried out here. */
export const WAY_OUT =
  'Choose one: start Docker, or install buildah (Debian: apt-get install buildah), and deploy again · do that step beforehand and COPY the result ' +
  '· build elsewhere, push to a registry, and name it with "image" in agentcore.json.';

/** What a COPY or ADD below `folder` asks for. Throws a `CliError` (usage) that names the line. */
export function copyStep(
  instruction: Instruction,
  folder: string,
  lookup: Lookup,
  users: Readonly<Record<string, number>>,
): CopyStep {
  const { line, name, rest } = instruction;
  const listed = jsonTexts(rest);
  const paths = listed
    ? placed(instruction, () => listed.map((path) => expand(path, lookup)))
    : words(instruction, lookup);
  const said = paths.at(-1);
  const sources = paths.slice(0, -1);
  if (said === undefined || sources.length === 0) throw lineError(line, `${name} needs a source and a target.`);
  for (const source of name === 'ADD' ? sources : []) {
    if (/^(https?|git|ssh):|^git@/i.test(source))
      throw lineError(
        line,
        `ADD of ${source.slice(0, 100)} needs a builder: without one, nothing is fetched.`,
        WAY_OUT,
      );
    if (/\.(tar(\.\w+)?|tgz|tbz2?|txz)$/i.test(source))
      throw lineError(line, `ADD of ${source.slice(0, 100)} would be unpacked, which needs a builder.`, WAY_OUT);
  }
  const flag = (wanted: string): string | undefined => {
    const text = instruction.flags.filter(([one]) => one === wanted).at(-1)?.[1];
    return text && placed(instruction, () => expand(text, lookup));
  };
  const intoFolder = sources.length > 1 || /(^|\/)\.?$/.test(said);
  const target = posix.resolve(folder, said);
  return {
    kind: 'copy',
    line,
    sources,
    target,
    intoFolder,
    owner: owner(flag('chown'), line, users),
    mode: mode(flag('chmod'), line),
  };
}

function owner(text: string | undefined, line: number, users: Readonly<Record<string, number>>): Owner {
  if (!text) return { uid: 0, gid: 0 };
  const ids = text.split(':').map((id) => (/^\d{1,9}$/.test(id) ? Number(id) : users[id]));
  const [uid, gid = uid] = ids;
  if (uid === undefined || gid === undefined || ids.length > 2)
    throw lineError(
      line,
      `--chown=${text.slice(0, 60)}: only the base image knows the number of that name. Give the number.`,
      'Write numbers: --chown=1000:1000',
    );
  return { uid, gid };
}

function mode(text: string | undefined, line: number): number | undefined {
  if (!text) return undefined;
  if (!/^0?[0-7]{3,4}$/.test(text))
    throw lineError(line, `--chmod=${text.slice(0, 60)} is not understood.`, 'Write it in octal: --chmod=755');
  return Number.parseInt(text, 8);
}
