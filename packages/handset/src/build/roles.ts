import type { PluginRegistry } from '../plugins/registry.ts';

/** What a file of the project is for. */
export type Role =
  /** Copied to public/ under the same name below app/assets/. */
  | 'asset'
  /** The main page template: compiled to public/index.html. */
  | 'page'
  /** A template: one function in templates.js. */
  | 'template'
  /** A script of the application: part of app.js. */
  | 'script'
  /** A third-party script: part of vendor.js. */
  | 'vendor'
  /** A style sheet outside of app/assets/: part of stylesheets/app.css. */
  | 'style'
  /** Not an output of its own: partial templates (`_name`), unit tests (`name.test.coffee`), readmes. */
  | 'other';

/** The role of a source by its project name and the languages at hand. */
export function roleOf(name: string, plugins: PluginRegistry): Role {
  if (name.startsWith('app/assets/')) return 'asset';
  const targets = plugins.find(name)?.targets ?? [];
  const base = name.slice(name.lastIndexOf('/') + 1);
  if (targets.includes('style') && /^(app|vendor)\//.test(name)) return base.startsWith('_') ? 'other' : 'style';
  if (name.startsWith('vendor/')) return targets.includes('script') ? 'vendor' : 'other';
  if (!name.startsWith('app/')) return 'other';
  if (targets.includes('script')) return isUnitTest(base) ? 'other' : 'script';
  if (base.startsWith('_')) return 'other';
  if (targets.includes('page') && /^app\/index\.[^./]+$/.test(name)) return 'page';
  return targets.includes('template') ? 'template' : 'other';
}

/** Whether a base name marks a file that holds nothing but unit tests and so stays out of app.js. */
export function isUnitTest(baseName: string): boolean {
  return /\.test\.[^.]+(\.md)?$/.test(baseName);
}

/** The name under which a template is called: its path below app/templates/ (or app/) without the extension. */
export function templateName(name: string): string {
  return name.replace(/^app\/(templates\/)?/, '').replace(/\.[^./]+$/, '');
}
