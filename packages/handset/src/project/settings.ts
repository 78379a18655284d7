import { readFileSync } from 'node:fs';
import { ProblemError } from '../problem.ts';
import { isGone } from './list-files.ts';
import { projectPath } from './paths.ts';
import { decodeSource } from './source-text.ts';

export const SETTINGS_FILE = 'handset.config.json';

/** Limits that `handset lint` holds an application against, in bytes. */
export interface Budgets {
  /** index.html, all style sheets and all images together: what a phone loads. */
  readonly page: number;
  /** One image. */
  readonly image: number;
  /** app.js, vendor.js and templates.js together, minified: what the proxy loads. */
  readonly script: number;
  /** All files of public/ together. */
  readonly package: number;
}

const MODULE_SETTINGS = ['auto', 'commonjs', 'none'] as const;
export type ModuleSetting = (typeof MODULE_SETTINGS)[number];

/** What handset.config.json may say; every setting has a default, and the file may be missing. */
export interface Settings {
  /** Project names of plugin files, asked before the built-in languages. */
  readonly plugins: readonly string[];
  /** Sources (names or patterns) that come first and last in app.js or vendor.js, in this order; all others stand between, by name. */
  readonly first: readonly string[];
  readonly last: readonly string[];
  /** Whether scripts of app/ are CommonJS modules: `auto` where one of them, or the page, requires another. */
  readonly modules: ModuleSetting;
  /** Port of the dev server. */
  readonly port: number;
  /** What `handset lint` lets pass although ES5 has it not: `Promise`, `Object.assign`, `includes`. */
  readonly allow: readonly string[];
  readonly budgets: Budgets;
}

export const DEFAULT_SETTINGS: Settings = {
  plugins: [],
  first: [],
  last: [],
  modules: 'auto',
  port: 3333,
  allow: [],
  budgets: { page: 102_400, image: 20_480, script: 262_144, package: 1_048_576 },
};

/** Read handset.config.json; throws `settings-invalid` that names the setting at fault. */
export function readSettings(root: string): Settings {
  let text: string;
  try {
    text = decodeSource(readFileSync(projectPath(root, SETTINGS_FILE)), SETTINGS_FILE);
  } catch (error) {
    if (isGone(error)) return DEFAULT_SETTINGS;
    throw error;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error));
  }
  return parseSettings(value);
}

/** Check a decoded handset.config.json; throws `settings-invalid`. */
export function parseSettings(value: unknown): Settings {
  const given = asObject(value, 'the file');
  refuseUnknown(given, Object.keys(DEFAULT_SETTINGS), '');
  const budgets = asObject(given.budgets ?? {}, '"budgets"');
  refuseUnknown(budgets, Object.keys(DEFAULT_SETTINGS.budgets), 'budgets.');
  const budget = (name: keyof Budgets): number =>
    asInteger(budgets[name] ?? DEFAULT_SETTINGS.budgets[name], `"budgets.${name}"`, 1, Number.MAX_SAFE_INTEGER);
  return {
    plugins: asNames(given.plugins ?? [], '"plugins"'),
    first: asNames(given.first ?? [], '"first"'),
    last: asNames(given.last ?? [], '"last"'),
    modules: asModules(given.modules ?? DEFAULT_SETTINGS.modules),
    port: asInteger(given.port ?? DEFAULT_SETTINGS.port, '"port"', 0, 65_535),
    allow: asWords(given.allow ?? [], '"allow"'),
    budgets: { page: budget('page'), image: budget('image'), script: budget('script'), package: budget('package') },
  };
}

function refuseUnknown(given: Record<string, unknown>, known: readonly string[], prefix: string): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) {
      throw invalid(`"${prefix}${name}" is not a setting; there are ${known.map((k) => `${prefix}${k}`).join(', ')}`);
    }
  }
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${what} must be an object`);
  return value as Record<string, unknown>;
}

function asNames(value: unknown, what: string): string[] {
  if (!Array.isArray(value)) throw invalid(`${what} must be a list of file names`);
  return value.map((entry: unknown) => {
    if (typeof entry !== 'string' || entry === '') throw invalid(`${what} must be a list of file names`);
    const name = entry.replaceAll('\\', '/').replace(/^\.\//, '');
    if (name.startsWith('/') || name.split('/').includes('..')) throw invalid(`${what}: "${entry}" leads outside`);
    return name;
  });
}

function asModules(value: unknown): ModuleSetting {
  const found = MODULE_SETTINGS.find((one) => one === value);
  if (!found) throw invalid(`"modules" must be one of ${MODULE_SETTINGS.map((one) => `"${one}"`).join(', ')}`);
  return found;
}

function asWords(value: unknown, what: string): string[] {
  const isList = Array.isArray(value) && value.every((word) => typeof word === 'string' && /^[\w$.]+$/.test(word));
  if (!isList) throw invalid(`${what} must be a list of names such as "Object.assign"`);
  return value;
}

function asInteger(value: unknown, what: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalid(`${what} must be a whole number from ${min} to ${max}`);
  }
  return value;
}

function invalid(message: string): ProblemError {
  return new ProblemError('settings-invalid', { file: SETTINGS_FILE, message: `${message}.` });
}
