import type { PluginRegistry } from '../plugins/registry.ts';
import { type Problem, ProblemError, problem } from '../problem.ts';
import { compareNames, projectPath } from '../project/paths.ts';
import { SETTINGS_FILE, type Settings } from '../project/settings.ts';
import { parseXml } from '../project/xml.ts';
import { browserScript } from '../server/browser-script.ts';
import {
  type BundlePart,
  joinParts,
  SCRIPT_HEADER,
  scriptPart,
  sourcePlace,
  stylePart,
  templatePart,
  usesMwl,
} from './bundle.ts';
import { createCompileCache } from './compile-cache.ts';
import { type Compiled, type CompileJob, compileSource, withFrame } from './compiler.ts';
import { createMinifier, refuseNewer } from './minify.ts';
import { missingModules, moduleName, modulePart, modulesHeader, requiresModules } from './modules.ts';
import { nameClash } from './name-clash.ts';
import { allowOptimizing, MANY_SOURCES } from './optimizing.ts';
import { orderSources, unmatchedNames } from './order.ts';
import { copyOutput, type Output, textOutput } from './output.ts';
import { type Role, roleOf, templateName } from './roles.ts';
import { createSourceStore } from './source-store.ts';
import { leavesOutTests } from './unit-tests.ts';
import { unusedSources } from './unused.ts';

export interface AssemblerOptions {
  /** Path of the project on this machine. */
  readonly root: string;
  readonly settings: Settings;
  readonly plugins: PluginRegistry;
  /** Minify scripts and write no source maps. */
  readonly production: boolean;
  /** Let a production build pass that is newer than ES5. */
  readonly keepsNewer?: boolean;
}

export interface Assembly {
  /** Files below public/ by name, in order; undefined when an error stands in the way. */
  readonly outputs: ReadonlyMap<string, Output> | undefined;
  readonly problems: readonly Problem[];
  /** Number of source files that were compiled anew; what an earlier build compiled from the same contents is not counted. */
  readonly compiled: number;
}

/** Turns the sources of one project into the files of public/, and again, doing only what a change asks for. */
export interface Assembler {
  /** Read every source and assemble. */
  assemble(): Promise<Assembly>;
  /** Assemble after these project names changed, appeared or vanished; undefined if no content differs. */
  reassemble(names: Iterable<string>): Promise<Assembly | undefined>;
}

const CONFIG = 'app/assets/config.xml';
const ICON = 'app/assets/icon.png';
const ASSET_PAGE = 'app/assets/index.html';
/** A page below app/assets/ that says of itself that the template wins. */
const SPARE_PAGE = /<!--\s*handset: spare page\b/;
const RUNTIME = 'vendor/pug_runtime.js';
const TARGETS = { page: 'page', template: 'template', script: 'script', vendor: 'script', style: 'style' } as const;

export function createAssembler(options: AssemblerOptions): Assembler {
  const { root, settings, plugins, production, keepsNewer = false } = options;
  const store = createSourceStore(root);
  const compiled = new Map<string, Compiled>();
  const parts = new Map<string, { readonly of: Compiled; readonly part: BundlePart }>();
  const bundles = new Map<string, Joined>();
  const minify = createMinifier({ keepsNewer });
  const cache = createCompileCache(root, plugins, store);
  let groups: { readonly generation: number; readonly byRole: ByRole } | undefined;

  const useKept = (job: CompileJob): boolean => {
    const kept = cache.find(job);
    if (kept) compiled.set(job.name, kept);
    return kept !== undefined;
  };

  const assembleChanged = async (changed: ReadonlySet<string>, full: boolean): Promise<Assembly> => {
    const dirty = new Set(changed);
    for (const [name, { dependencies }] of compiled) {
      for (const dependency of dependencies) if (changed.has(dependency)) dirty.add(name);
    }
    const requests: CompileJob[] = [];
    for (const name of dirty) {
      const role = store.has(name) ? roleOf(name, plugins) : 'other';
      if (role !== 'asset' && role !== 'other') requests.push({ name, target: TARGETS[role] });
      else {
        compiled.delete(name);
        parts.delete(name);
      }
    }
    const missed = full ? requests.filter((job) => !useKept(job)) : requests;
    for (const [index, { name, target }] of missed.entries()) {
      if (index === MANY_SOURCES) allowOptimizing();
      compiled.set(name, await compileSource(name, target, plugins, store));
    }
    if (full && missed.length > 0) cache.save(compiled);
    return { ...(await outputsOf()), compiled: missed.length };
  };

  const outputsOf = async (): Promise<Omit<Assembly, 'compiled'>> => {
    if (groups?.generation !== store.generation) {
      groups = { generation: store.generation, byRole: groupByRole(store.names(), plugins) };
    }
    const { byRole } = groups;
    const problems: Problem[] = [
      ...store.problems,
      ...missingParts(byRole),
      ...unusedSources(byRole.other),
      ...checkOrder(byRole, settings),
      ...checkConfig(),
    ];
    for (const result of compiled.values()) if (!result.ok) problems.push(result.problem);
    if (problems.some((p) => p.severity === 'error')) return { outputs: undefined, problems: sortProblems(problems) };

    const outputs = new Map<string, Output>();
    const add = (name: string, output: Output): void => {
      const other = outputs.get(name);
      if (!other) outputs.set(name, output);
      else {
        const message = `${output.source} and ${other.source} would both become public/${name}.`;
        problems.push(problem('output-clash', { file: output.source, message }));
      }
    };
    try {
      addPage(byRole, add, problems);
      for (const name of byRole.asset) await addAsset(name, byRole, add);
      await addScripts(byRole, add, problems);
      await addStyles(byRole, add);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      problems.push(withFrame(error.problem, store));
    }
    const failed = problems.some((p) => p.severity === 'error');
    const sorted = new Map([...outputs].sort(([a], [b]) => compareNames(a, b)));
    return { outputs: failed ? undefined : sorted, problems: sortProblems(problems) };
  };

  const addScripts = async (byRole: ByRole, add: Add, problems: Problem[]): Promise<void> => {
    const page = pageText(byRole);
    const own = orderSources(byRole.script, settings).map((name) => partOf(name, 'script'));
    const templates = byRole.template.map((name) => partOf(name, 'template'));
    const brought = orderSources(byRole.vendor, settings).map((name) => partOf(name, 'script'));
    const vendor = withClient(brought, [...own, ...templates], byRole, page, problems);
    const header = runtimeHeader(byRole, brought, problems) + TEMPLATES_HEADER;
    const names = new Set([...byRole.script, ...byRole.template].map(moduleName));
    const hasModules = usesModules(own, names, page);
    if (hasModules && !brought.some(bringsRequire)) problems.push(...unknownModules(own, names));
    // Brunch puts templates into app.js: a page that was made for it loads no other script with them.
    const bringsTemplates = hasModules && templates.length > 0 && !page.includes('/templates.js');
    const app = hasModules ? [...(bringsTemplates ? templates : []), ...own.map(asModule)] : own;
    await checkTogether([...vendor, ...app]);
    const withoutTests = production && leavesOutTests(own.map(codeOf), [...vendor, ...templates].map(codeOf));
    const moduleHeader = (bringsTemplates ? header : '') + modulesHeader(byRole.template);
    const appHeader = hasModules ? moduleHeader : SCRIPT_HEADER;
    await addBundle('javascripts/app.js', app, appHeader, add, withoutTests);
    await addBundle('javascripts/vendor.js', vendor, SCRIPT_HEADER, add);
    await addBundle('javascripts/templates.js', templates, header, add);
    await addBundle('js/templates.js', templates, header, add);
  };

  /** Style sheets that are no assets, those of vendor/ first; there is no file without them. */
  const addStyles = async (byRole: ByRole, add: Add): Promise<void> => {
    if (byRole.style.length === 0) return;
    const isVendor = (name: string): boolean => name.startsWith('vendor/');
    const names = [...byRole.style.filter(isVendor), ...byRole.style.filter((name) => !isVendor(name))];
    const { code } = joinParts(
      STYLES,
      orderSources(names, settings).map((name) => partOf(name, 'style')),
    );
    add(STYLES, textOutput(STYLES, code));
  };

  const pageText = (byRole: ByRole): string => {
    const page = byRole.page[0];
    const source = page === undefined ? undefined : compiled.get(page);
    if (source?.ok) return source.result.output;
    return store.has(ASSET_PAGE) ? store.text(ASSET_PAGE) : '';
  };

  const mwlByHash = new Map<string, boolean>();
  const themeUsesMwl = (name: string): boolean => {
    if (!name.endsWith('.js')) return false;
    const hash = store.hash(name) ?? '';
    const known = mwlByHash.get(hash);
    if (known !== undefined) return known;
    let uses = false;
    try {
      uses = usesMwl(store.text(name));
    } catch {
      // It is copied all the same: it is no UTF-8, or has gone since it was listed.
    }
    mwlByHash.set(hash, uses);
    return uses;
  };

  const usesModules = (scripts: readonly BundlePart[], names: ReadonlySet<string>, page: string): boolean => {
    if (settings.modules !== 'auto') return settings.modules === 'commonjs';
    return requiresModules(scripts, page, names);
  };

  const modules = new WeakMap<BundlePart, BundlePart>();
  const asModule = (part: BundlePart): BundlePart => {
    const known = modules.get(part) ?? modulePart(part);
    modules.set(part, known);
    return known;
  };

  let client: BundlePart | undefined;
  /** The vendor scripts, with the client library before them where `mwl` is used and nothing brings it. */
  const withClient = (
    vendor: readonly BundlePart[],
    users: readonly BundlePart[],
    byRole: ByRole,
    page: string,
    problems: Problem[],
  ): readonly BundlePart[] => {
    const isUsed = usesMwl(page) || users.some((part) => part.usesMwl) || byRole.asset.some(themeUsesMwl);
    if (!isUsed || vendor.some(({ code }) => BRINGS_MWL.test(code))) return vendor;
    if (!page.includes('javascripts/vendor.js')) {
      const message = 'The page uses mwl, which handset puts into javascripts/vendor.js, and does not load that.';
      problems.push(problem('client-unreached', { file: byRole.page[0] ?? ASSET_PAGE, message }));
    }
    client ??= scriptPart('handset/client.js', browserScript('client/handset.js'), undefined);
    return [client, ...vendor];
  };

  const partOf = (name: string, kind: 'script' | 'template' | 'style'): BundlePart => {
    const source = compiled.get(name);
    const known = parts.get(name);
    if (known && known.of === source) return known.part;
    if (!source?.ok) throw new Error(`${name} was not compiled`);
    const { output, map } = source.result;
    const part =
      kind === 'template'
        ? templatePart(name, templateName(name), output, map)
        : kind === 'script'
          ? scriptPart(name, output, map)
          : stylePart(name, output);
    parts.set(name, { of: source, part });
    return part;
  };

  const addBundle = async (
    file: string,
    key: readonly BundlePart[],
    header: string,
    add: Add,
    withoutTests = false,
  ): Promise<void> => {
    const known = bundles.get(file);
    const same = known && known.withoutTests === withoutTests && known.header === header && sameParts(known.key, key);
    const outputs = same ? known.outputs : new Map<string, Output>();
    if (!same) {
      const base = file.slice(file.lastIndexOf('/') + 1);
      const { code, map } = joinParts(base, key, header);
      if (production) {
        const minified = await minify(file, code, withoutTests).catch((fault: unknown) => {
          throw inSource(fault, key, header);
        });
        outputs.set(file, textOutput(file, minified));
      } else {
        outputs.set(file, textOutput(file, `${code}//# sourceMappingURL=${base}.map\n`));
        outputs.set(`${file}.map`, textOutput(file, map));
      }
      bundles.set(file, { key, header, withoutTests, outputs });
    }
    for (const [name, output] of outputs) add(name, output);
  };

  let together: readonly BundlePart[] | undefined;
  const checkTogether = async (scripts: readonly BundlePart[]): Promise<void> => {
    if (together && sameParts(together, scripts)) return;
    const clash = await nameClash(scripts);
    if (clash) throw new ProblemError('script-syntax', clash);
    together = scripts;
  };

  const addPage = (byRole: ByRole, add: Add, problems: Problem[]): void => {
    const page = byRole.page[0];
    if (page === undefined) return;
    const source = compiled.get(page);
    if (source?.ok) add('index.html', textOutput(page, source.result.output));
    if (byRole.asset.includes(ASSET_PAGE) && !SPARE_PAGE.test(store.text(ASSET_PAGE))) {
      const message = `${page} wins: it becomes public/index.html, and ${ASSET_PAGE} is left out.`;
      problems.push(problem('page-twice', { file: ASSET_PAGE, message }));
    }
  };

  const addAsset = async (name: string, byRole: ByRole, add: Add): Promise<void> => {
    if (name === ASSET_PAGE && byRole.page.length > 0) return;
    const target = name.slice('app/assets/'.length);
    const hash = store.hash(name) ?? '';
    if (production && target.endsWith('.js') && !target.endsWith('.min.js')) {
      add(target, textOutput(name, await minify(name, store.text(name))));
    } else {
      if (production && !keepsNewer && target.endsWith('.min.js')) await refuseNewer(name, store.text(name));
      add(target, copyOutput(name, projectPath(root, name), hash));
    }
  };

  let checkedConfig: { hash: string; problems: Problem[] } | undefined;
  const checkConfig = (): Problem[] => {
    const hash = store.hash(CONFIG);
    if (hash === undefined) return [];
    if (checkedConfig?.hash !== hash) {
      checkedConfig = { hash, problems: [] };
      try {
        parseXml(store.text(CONFIG), CONFIG);
      } catch (error) {
        if (!(error instanceof ProblemError)) throw error;
        checkedConfig.problems.push(error.problem);
      }
    }
    return checkedConfig.problems;
  };

  return {
    assemble: () => assembleChanged(store.readAll(), true),
    async reassemble(names) {
      const changed = store.refresh(names);
      return changed.size === 0 ? undefined : assembleChanged(changed, false);
    },
  };
}

type Add = (name: string, output: Output) => void;

const STYLES = 'stylesheets/app.css';
const BRINGS_MWL = /\bmwl\s*=|handset client library/;

/** Pug's runtime, where templates need it and what vendor/ brings is another one, such as Jade's. */
function runtimeHeader(byRole: ByRole, vendor: readonly BundlePart[], problems: Problem[]): string {
  if (!byRole.template.some((name) => /\.(pug|jade)$/.test(name))) return '';
  const runtimes = vendor.filter(({ source }) => RUNTIME_NAME.test(source));
  if (runtimes.length === 0 || vendor.some(({ code }) => /\bpug\b/.test(code))) return '';
  const file = runtimes[0]?.source;
  const message = `${file} is not the runtime of these templates, which are compiled by Pug.`;
  problems.push(problem('runtime-other', { file, message }));
  return `${browserScript('scaffold/vendor/pug_runtime.js').trimEnd()}\n;\n`;
}

function checkOrder(byRole: ByRole, settings: Settings): Problem[] {
  return unmatchedNames([...byRole.script, ...byRole.vendor, ...byRole.style], settings).map((name) =>
    problem('order-unmatched', {
      file: SETTINGS_FILE,
      message: `"${name}" is no source of app.js, vendor.js or app.css.`,
    }),
  );
}

/** A `require` of the application's own, which may know more names. */
function bringsRequire({ source, code }: BundlePart): boolean {
  // The runtime has one that is its own alone.
  return !RUNTIME_NAME.test(source) && /\brequire\s*=|\bfunction\s+require\b/.test(code);
}

function unknownModules(scripts: readonly BundlePart[], names: ReadonlySet<string>): Problem[] {
  return scripts.flatMap((script) =>
    missingModules(script, names).map((name) =>
      problem('module-missing', {
        file: script.source,
        message: `It requires "${name}", which is no script or template of app/.`,
      }),
    ),
  );
}

const TEMPLATES_HEADER = 'var templates = this.templates || {};\n';

/** A script of public/ that was joined, and what it was made from. */
interface Joined {
  readonly key: readonly BundlePart[];
  readonly header: string;
  readonly withoutTests: boolean;
  readonly outputs: Map<string, Output>;
}

type ByRole = Readonly<Record<Role, readonly string[]>>;

function groupByRole(names: Iterable<string>, plugins: PluginRegistry): ByRole {
  const groups: Record<Role, string[]> = {
    asset: [],
    page: [],
    template: [],
    script: [],
    vendor: [],
    style: [],
    other: [],
  };
  for (const name of names) groups[roleOf(name, plugins)].push(name);
  for (const group of Object.values(groups)) group.sort(compareNames);
  return groups;
}

/** A fault of joined code as one of the source in which it stands. */
function inSource(fault: unknown, parts: readonly BundlePart[], header: string): unknown {
  const place = fault instanceof ProblemError && sourcePlace(parts, header, fault.problem);
  if (!place) return fault;
  return new ProblemError(fault.problem.code, { ...place, message: fault.problem.message });
}

function codeOf(part: BundlePart): string {
  return part.code;
}

function sameParts(one: readonly BundlePart[], other: readonly BundlePart[]): boolean {
  return one.length === other.length && one.every((part, i) => part === other[i]);
}

function missingParts(byRole: ByRole): Problem[] {
  const problems: Problem[] = [];
  const assets = new Set(byRole.asset);
  if (!assets.has(CONFIG))
    problems.push(problem('config-missing', { file: CONFIG, message: 'There is no config.xml.' }));
  if (!assets.has(ICON)) problems.push(problem('icon-missing', { file: ICON, message: 'There is no icon.png.' }));
  if (byRole.page.length === 0 && !assets.has(ASSET_PAGE)) {
    problems.push(problem('page-missing', { file: 'app/index.pug', message: 'There is no main page.' }));
  }
  if (byRole.page.length > 1) {
    const message = `Both ${byRole.page.join(' and ')} would become public/index.html.`;
    problems.push(problem('page-ambiguous', { file: byRole.page[1], message }));
  }
  const needsRuntime = byRole.template.some((name) => /\.(pug|jade)$/.test(name));
  if (needsRuntime && !byRole.vendor.some((name) => RUNTIME_NAME.test(name))) {
    problems.push(problem('runtime-missing', { file: RUNTIME, message: 'The templates need their runtime.' }));
  }
  const names = new Map<string, string>();
  for (const name of byRole.template) {
    const called = templateName(name);
    const other = names.get(called);
    if (other !== undefined) {
      const message = `${other} and ${name} would both be the template "${called}".`;
      problems.push(problem('output-clash', { file: name, message }));
    }
    names.set(called, name);
  }
  return problems;
}

/** The file that brings the global `pug`; a version in its name is fine. */
const RUNTIME_NAME = /(^|\/)(pug|jade)[-_.]?runtime[^/]*\.js$/;

function sortProblems(problems: readonly Problem[]): Problem[] {
  return [...problems].sort((a, b) => {
    if (a.severity !== b.severity) return a.severity === 'error' ? -1 : 1;
    return compareNames(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0);
  });
}
