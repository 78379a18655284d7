import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CommandContext, ExitStatus } from '../cli/context.ts';
import { PACKAGE_FOLDER, packageManifest } from '../package-folder.ts';
import { ProblemError } from '../problem.ts';

export interface NewOptions {
  readonly theme?: string;
  readonly handset?: string;
}

const PACKAGE = fileURLToPath(PACKAGE_FOLDER);
const SCAFFOLD_NAME = 'my-app';
const SCAFFOLD_THEME = 'light';
/** Names of output folders that a theme must not take. */
const TAKEN = ['javascripts', 'js'];

/** `handset new`: copy the scaffold and give it its name and theme. */
export async function newCommand(
  target: string,
  options: NewOptions,
  { cwd, terminal }: CommandContext,
): Promise<ExitStatus> {
  const folder = path.resolve(cwd, target);
  const name = path.basename(folder);
  const theme = options.theme ?? SCAFFOLD_THEME;
  if (!/^[a-z0-9][a-z0-9._-]{0,99}$/.test(name)) {
    const message = `"${name}" cannot name an application: use small letters, digits, dots and dashes.`;
    throw new ProblemError('usage', { message, remedy: 'For example: npx handset new my-app' });
  }
  if (!/^[a-z][a-z0-9-]{0,39}$/.test(theme) || TAKEN.includes(theme)) {
    const message = `"${theme}" cannot name a theme: use small letters, digits and dashes, and not ${TAKEN.join(' or ')}.`;
    throw new ProblemError('usage', { message, remedy: 'For example: npx handset new my-app --theme night' });
  }
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0)) {
    throw new ProblemError('project-exists', { message: `${folder} exists already and is not an empty folder.` });
  }
  await mkdir(folder, { recursive: true });
  await cp(path.join(PACKAGE, 'scaffold'), folder, { recursive: true, filter: isOwnFile });
  // npm leaves .gitignore out of packages.
  await writeFile(path.join(folder, '.gitignore'), 'node_modules/\npublic/\n.handset/\n*.wgt\n');
  if (theme !== SCAFFOLD_THEME) await renameTheme(folder, theme);
  await replaceInFiles(folder, new RegExp(`\\b${SCAFFOLD_NAME}\\b`, 'g'), name);
  await setDependency(folder, options.handset ?? (await ownDependency(folder)));

  terminal.emit({ ok: true, folder, name, theme });
  terminal.say(`made ${name} in ${path.relative(cwd, folder) || '.'}`);
  terminal.say(`  cd ${path.relative(cwd, folder) || '.'}\n  npm install\n  npm start`);
  return 0;
}

function isOwnFile(source: string): boolean {
  return !/[\\/](node_modules|public|\.handset)$/.test(source);
}

async function renameTheme(folder: string, theme: string): Promise<void> {
  const assets = path.join(folder, 'app/assets');
  await rename(path.join(assets, SCAFFOLD_THEME), path.join(assets, theme));
  for (const [kind, extension] of [
    ['css', '.css'],
    ['js', '.js'],
  ] as const) {
    const from = path.join(assets, theme, kind, SCAFFOLD_THEME + extension);
    await rename(from, path.join(assets, theme, kind, theme + extension));
  }
  await replaceInFiles(
    folder,
    new RegExp(`\\b${SCAFFOLD_THEME}/(css|js)/${SCAFFOLD_THEME}\\b`, 'g'),
    `${theme}/$1/${theme}`,
  );
  await replaceInFiles(folder, new RegExp(`\\b${SCAFFOLD_THEME}/(?=css/|js/|images/)`, 'g'), `${theme}/`);
  await replaceInFiles(folder, new RegExp(`value="${SCAFFOLD_THEME}"`, 'g'), `value="${theme}"`);
}

async function replaceInFiles(folder: string, pattern: RegExp, replacement: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(pug|html|xml|json|md|css|js|coffee)$/.test(entry.name)) continue;
    if (entry.parentPath.endsWith('vendor') && entry.name.endsWith('.js')) continue;
    const file = path.join(entry.parentPath, entry.name);
    const before = await readFile(file, 'utf8');
    const after = before.replace(pattern, replacement);
    if (after !== before) await writeFile(file, after);
  }
}

/**
 * What `npm install` finds again, written so that others can have the project: a registry's version, or the archive, which
 * comes along. From a checkout it is the way to its folder, which is on this machine alone (the README says what to do).
 */
async function ownDependency(folder: string): Promise<string> {
  const from = installedFrom();
  if (from !== undefined && /^https?:/.test(from)) return packageManifest().version;
  const archive = from?.startsWith('file:') ? path.resolve(PACKAGE, '../..', from.slice('file:'.length)) : '';
  if (/\.t(ar\.)?gz$/.test(archive) && existsSync(archive)) {
    await cp(archive, path.join(folder, path.basename(archive)));
    return `file:${path.basename(archive)}`;
  }
  return `file:${path.relative(realpathSync(folder), realpathSync(PACKAGE)).replaceAll('\\', '/')}`;
}

/** Where npm took this package from, as it noted beside it; undefined in a checkout. */
function installedFrom(): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(path.join(PACKAGE, '../.package-lock.json'), 'utf8')) as {
      packages?: Record<string, { resolved?: unknown } | undefined>;
    };
    const resolved = lock.packages?.['node_modules/handset']?.resolved;
    return typeof resolved === 'string' ? resolved : undefined;
  } catch {
    return undefined;
  }
}

async function setDependency(folder: string, spec: string): Promise<void> {
  const file = path.join(folder, 'package.json');
  const value = JSON.parse(await readFile(file, 'utf8')) as { devDependencies: Record<string, string> };
  value.devDependencies.handset = spec;
  await writeFile(file, `${JSON.stringify(value, null, 2)}\n`);
}
