import { browserScript } from '../server/browser-script.ts';
import { type BundlePart, requiredNames } from './bundle.ts';
import { templateName } from './roles.ts';

/** The name under which a script or a template of app/ is required: its path below app/ without the extension. */
export function moduleName(source: string): string {
  return source.replace(/^app\//, '').replace(/(\.coffee\.md|\.[^./]+)$/, '');
}

/** Whether a script or the page requires one of these modules, as applications made for Brunch do. */
export function requiresModules(
  scripts: readonly Pick<BundlePart, 'source' | 'requires'>[],
  page: string,
  modules: ReadonlySet<string>,
): boolean {
  const finds = (from: string, names: readonly string[]): boolean =>
    names.some((name) => isModule(from, name, modules));
  return finds('', requiredNames(page)) || scripts.some(({ source, requires }) => finds(moduleName(source), requires));
}

/** The names that a script requires and no module has. */
export function missingModules(
  { source, requires }: Pick<BundlePart, 'source' | 'requires'>,
  modules: ReadonlySet<string>,
): string[] {
  return requires.filter((name) => !isModule(moduleName(source), name, modules));
}

function isModule(from: string, name: string, modules: ReadonlySet<string>): boolean {
  const full = resolve(from, name);
  return modules.has(full) || modules.has(`${full}/index`);
}

function resolve(from: string, name: string): string {
  const path = /^\.\.?(\/|$)/.test(name) ? [...from.split('/').slice(0, -1), ...name.split('/')] : name.split('/');
  const parts: string[] = [];
  for (const part of path) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/').replace(/\.(js|coffee|pug|jade)$/, '');
}

/** A script as the definition of its module; its names are its own. */
export function modulePart(part: BundlePart): BundlePart {
  const code = `require.register(${JSON.stringify(moduleName(part.source))}, function (exports, require, module) {\n${part.code}});\n`;
  return { ...part, code, lines: part.lines + 2, map: part.map && shifted(part.map), declaresOnce: false };
}

/** What stands before modules: `require`, and the templates as modules of their own names. */
export function modulesHeader(templates: readonly string[]): string {
  const aliases = templates.map((source) => {
    const template = `templates[${JSON.stringify(templateName(source))}]`;
    return `require.register(${JSON.stringify(moduleName(source))}, function (exports, require, module) { module.exports = ${template}; });\n`;
  });
  return `;\n${browserScript('browser/require.js').trimEnd()}\n${aliases.join('')}`;
}

/** A source map for code that begins one line later. */
function shifted(map: string): string {
  const value = JSON.parse(map) as { mappings: string };
  return JSON.stringify({ ...value, mappings: `;${value.mappings}` });
}
