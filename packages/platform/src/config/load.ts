import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { errorCode } from '../kernel/system-error.ts';
import { readFlags } from './flags.ts';
import { envPrefix, type NamedSetting, namedSettings } from './names.ts';
import { nearest } from './nearest.ts';
import type { Machine, SettingTree, ValuesOf } from './setting.ts';

/** What the loader needs of the world. */
export interface ConfigSources {
  machine: Machine;
  cwd: string;
  /** Text of a file, undefined when there is none. */
  readFile(path: string): string | undefined;
}

/** The configuration is wrong; `problems` names every setting with where it was set. */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`The configuration is not usable:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** A value as it was given, and by what name its giver knows it. */
interface Given {
  value: unknown;
  from: string;
}

const hostSources = (): ConfigSources => ({
  machine: { cpus: cpus().length, memoryBytes: totalmem(), openFiles: hardLimitOfOpenFiles() },
  cwd: process.cwd(),
  readFile(path) {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  },
});

/** From `/proc/self/limits`; no limit where there is no such file. */
function hardLimitOfOpenFiles(): number {
  try {
    const [, hard] = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return hard === undefined ? Number.POSITIVE_INFINITY : Number(hard);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * Values of every setting in `tree`: command line before environment before `<data>/config.json` before default.
 * `check` adds problems that concern several settings. Throws a `ConfigError` with all problems at once.
 */
export function loadSettings<T extends SettingTree>(
  tree: T,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  sources: ConfigSources = hostSources(),
  check: (values: ValuesOf<T>) => string[] = () => [],
): ValuesOf<T> {
  const all = namedSettings(tree);
  const problems: string[] = [];
  const flags = readFlags(argv, all, problems);
  const variables = readEnvironment(env, all, problems);
  const data = all.find((one) => one.key === 'data');
  const directory = data && settingValue(data, [flags, variables], sources, problems);
  const file =
    typeof directory === 'string' ? readConfigFile(join(directory, 'config.json'), all, sources, problems) : new Map();

  const values: Record<string, unknown> = {};
  for (const one of all) {
    put(
      values,
      one.key.split('.'),
      one === data ? directory : settingValue(one, [flags, variables, file], sources, problems),
    );
  }
  // The keys of `values` are those of `tree` and each value came from that setting's own `read` or default.
  const complete = values as ValuesOf<T>;
  if (problems.length === 0) problems.push(...check(complete));
  if (problems.length > 0) throw new ConfigError(problems);
  return complete;
}

function settingValue(
  one: NamedSetting,
  layers: Map<string, Given>[],
  sources: ConfigSources,
  problems: string[],
): unknown {
  const given = layers.map((layer) => layer.get(one.key)).find((found) => found !== undefined);
  const { setting } = one;
  try {
    const value =
      given !== undefined
        ? setting.read(given.value)
        : typeof setting.default === 'function'
          ? setting.default(sources.machine)
          : setting.default;
    return setting.unit === 'path' && typeof value === 'string' ? resolve(sources.cwd, value) : value;
  } catch (error) {
    problems.push(`${given?.from ?? one.key} ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

function readEnvironment(env: NodeJS.ProcessEnv, all: NamedSetting[], problems: string[]): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(envPrefix) || value === undefined || value === '') continue;
    const one = all.find((candidate) => candidate.env === name);
    if (one) given.set(one.key, { value, from: name });
    else {
      // Other programs may have variables with our prefix; a near miss is a typing error.
      const meant = nearest(
        name,
        all.map((candidate) => candidate.env),
      );
      if (meant) problems.push(`${name} is not a setting; did you mean ${meant}?`);
    }
  }
  return given;
}

function readConfigFile(
  path: string,
  all: NamedSetting[],
  sources: ConfigSources,
  problems: string[],
): Map<string, Given> {
  const given = new Map<string, Given>();
  try {
    const text = sources.readFile(path);
    if (text !== undefined) collect(JSON.parse(text), [], given, { path, all, problems });
  } catch (error) {
    problems.push(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  return given;
}

function collect(
  node: unknown,
  path: readonly string[],
  given: Map<string, Given>,
  file: { path: string; all: NamedSetting[]; problems: string[] },
): void {
  const key = path.join('.');
  const one = file.all.find((candidate) => candidate.key === key);
  if (one?.setting.notInFile) {
    file.problems.push(`${key} in ${file.path} has no effect; use --${one.flag} or ${one.env}`);
  } else if (one) {
    given.set(key, { value: node, from: `${key} in ${file.path}` });
  } else if (key !== '' && !file.all.some((candidate) => candidate.key.startsWith(`${key}.`))) {
    const keys = file.all.map((candidate) => candidate.key);
    const groups = keys.flatMap((candidate) =>
      candidate.split('.').map((_, end, parts) => parts.slice(0, end).join('.')),
    );
    const meant = nearest(key, [...keys, ...groups]);
    file.problems.push(`${key} in ${file.path} is not a setting${meant ? `; did you mean ${meant}?` : ''}`);
  } else if (typeof node === 'object' && node !== null && !Array.isArray(node)) {
    for (const [name, child] of Object.entries(node)) collect(child, [...path, name], given, file);
  } else {
    file.problems.push(`${key || 'the whole'} in ${file.path} must be an object`);
  }
}

function put(values: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name, ...rest] = path;
  if (name === undefined) return;
  if (rest.length === 0) values[name] = value;
  else {
    const below = values[name] ?? {};
    values[name] = below;
    put(below as Record<string, unknown>, rest, value);
  }
}
