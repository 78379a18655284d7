import { posix } from 'node:path';
import { type CopyStep, copyStep, WAY_OUT } from './copy-step.ts';
import type { RunSettings } from './image-document.ts';
import { args, assignments, expanded, placed, splitPair, words } from './instruction-values.ts';
import { type Instruction, jsonTexts, lineError } from './instructions.ts';
import { expand } from './words.ts';

/** A folder that is there from then on, as WORKDIR makes it. */
export interface FolderStep {
  kind: 'folder';
  path: string;
}

export interface ImagePlan {
  steps: (CopyStep | FolderStep)[];
  settings: RunSettings;
}

export interface FromLine {
  line: number;
  image: string;
  platform: string | undefined;
  /** ARGs above FROM, which an ARG of the same name below takes up. */
  globals: Map<string, string>;
}

const KNOWN = new Set(
  'FROM ARG WORKDIR COPY ADD ENV CMD ENTRYPOINT EXPOSE LABEL USER STOPSIGNAL SHELL MAINTAINER HEALTHCHECK'.split(' '),
);

/** What cannot be done without a builder. Throws a `CliError` that names the line and what to do. */
export function checkInstructions(instructions: readonly Instruction[]): void {
  const stages = instructions.filter(({ name }) => name === 'FROM');
  for (const { line, name, flags, hereDocument } of instructions) {
    if (name === 'RUN') throw lineError(line, 'RUN needs a builder: without one, no commands are run.', WAY_OUT);
    if (!KNOWN.has(name)) throw lineError(line, `${name.slice(0, 40)} is not understood without a builder.`, WAY_OUT);
    if (hereDocument) throw lineError(line, 'here-documents need a builder.', WAY_OUT);
    if (line === stages[1]?.line)
      throw lineError(line, 'a second FROM needs a builder: without one, an image has only one stage.', WAY_OUT);
    const foreign = flags.find(([flag]) => !(allowedFlags[name] ?? []).includes(flag));
    if (foreign) throw lineError(line, `${name} --${foreign[0]} needs a builder.`, WAY_OUT);
  }
  if (stages.length === 0) throw lineError(1, 'there is no FROM.');
}

// A health check takes whatever it likes, since it has no effect: the platform asks /ping.
const allowedFlags: Record<string, string[]> = {
  FROM: ['platform'],
  COPY: ['chown', 'chmod', 'link'],
  ADD: ['chown', 'chmod', 'link'],
  HEALTHCHECK: ['interval', 'timeout', 'start-period', 'start-interval', 'retries'],
};

/** The FROM line, with the ARGs above it put in; what comes after it is for `planImage`. */
export function readFrom(instructions: readonly Instruction[]): { from: FromLine; rest: Instruction[] } {
  const globals = new Map<string, string>();
  const at = instructions.findIndex(({ name }) => name === 'FROM');
  for (const instruction of instructions.slice(0, at)) {
    if (instruction.name !== 'ARG') throw lineError(instruction.line, `${instruction.name} comes before FROM.`);
    for (const [name, value] of args(instruction, (name) => globals.get(name))) globals.set(name, value ?? '');
  }
  const instruction = instructions[at];
  if (!instruction) throw lineError(1, 'there is no FROM.');
  const [image = '', as, , ...more] = words(instruction, (name) => globals.get(name));
  if (image === '' || (as !== undefined && as.toUpperCase() !== 'AS') || more.length > 0)
    throw lineError(instruction.line, 'FROM takes one image, and optionally AS and a name.');
  const named = instruction.flags.find(([flag]) => flag === 'platform')?.[1];
  // $BUILDPLATFORM and $TARGETPLATFORM are this machine, whatever it is.
  const platform = named && placed(instruction, () => expand(named, (name) => globals.get(name)));
  const from = { line: instruction.line, image, platform: platform || undefined, globals };
  return { from, rest: instructions.slice(at + 1) };
}

/**
 * What the instructions after FROM ask for, on a base with those settings. `users` are the names that the base is known to have.
 * Throws a `CliError` (usage) that names the line.
 */
export function planImage(
  instructions: readonly Instruction[],
  base: RunSettings,
  globals: ReadonlyMap<string, string>,
  users: Readonly<Record<string, number>>,
): ImagePlan {
  const settings: RunSettings = { ...base };
  const env = new Map((base.Env ?? []).map((line) => splitPair(line)));
  const given = new Map<string, string>();
  const labels = new Map(Object.entries(base.Labels ?? {}));
  const ports = new Set(Object.keys(base.ExposedPorts ?? {}));
  const steps: ImagePlan['steps'] = [];
  let folder = base.WorkingDir || '/';
  let shell = ['/bin/sh', '-c'];
  let ownCommand = false;
  const lookup = (name: string): string | undefined => env.get(name) ?? given.get(name);
  const command = (rest: string): string[] => jsonTexts(rest) ?? [...shell, rest];
  for (const instruction of instructions) {
    const { line, name, rest } = instruction;
    switch (name) {
      case 'ARG':
        for (const [arg, value] of args(instruction, lookup)) {
          const held = value ?? globals.get(arg);
          if (held !== undefined) given.set(arg, held);
        }
        break;
      case 'ENV':
        for (const [key, value] of assignments(instruction, lookup)) env.set(key, value);
        break;
      case 'LABEL':
        for (const [key, value] of assignments(instruction, lookup)) labels.set(key, value);
        break;
      case 'WORKDIR':
        folder = posix.resolve(folder, expanded(instruction, lookup));
        steps.push({ kind: 'folder', path: folder });
        break;
      case 'USER':
        settings.User = expanded(instruction, lookup);
        break;
      case 'STOPSIGNAL':
        settings.StopSignal = expanded(instruction, lookup);
        break;
      case 'EXPOSE':
        for (const word of words(instruction, lookup)) ports.add(port(word, line));
        break;
      case 'SHELL': {
        const said = jsonTexts(rest);
        if (!said || said.length === 0) throw lineError(line, 'SHELL takes a JSON list such as ["/bin/sh", "-c"].');
        shell = said;
        break;
      }
      case 'CMD':
        settings.Cmd = command(rest);
        ownCommand = true;
        break;
      case 'ENTRYPOINT':
        settings.Entrypoint = command(rest);
        // The command of the base was meant for the base's entry point.
        if (!ownCommand) delete settings.Cmd;
        break;
      case 'COPY':
      case 'ADD':
        steps.push(copyStep(instruction, folder, lookup, users));
        break;
      default:
        // MAINTAINER and HEALTHCHECK say nothing that an agent's image needs.
        break;
    }
  }
  settings.Env = [...env].map(([key, value]) => `${key}=${value}`);
  if (labels.size > 0) settings.Labels = Object.fromEntries(labels);
  if (ports.size > 0) settings.ExposedPorts = Object.fromEntries([...ports].map((one) => [one, {}]));
  settings.WorkingDir = folder;
  return { steps, settings };
}

function port(word: string, line: number): string {
  const [, from, to, protocol = 'tcp'] = /^(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp|sctp))?$/i.exec(word) ?? [];
  if (from === undefined) throw lineError(line, `EXPOSE ${word.slice(0, 40)}: that is not a port.`);
  return `${from}${to === undefined ? '' : `-${to}`}/${protocol.toLowerCase()}`;
}
