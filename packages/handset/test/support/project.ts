import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

export const PACKAGE = path.resolve(import.meta.dirname, '../..');

/** A folder of its own for one test, removed afterwards. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'handset-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A copy of the scaffold. */
export function scaffoldCopy(): string {
  const root = path.join(temporaryFolder(), 'my-app');
  cpSync(path.join(PACKAGE, 'scaffold'), root, { recursive: true });
  return root;
}

/** A copy of the example application. */
export function newsCopy(): string {
  const root = path.join(temporaryFolder(), 'news-reader');
  cpSync(path.join(PACKAGE, 'examples/news-reader'), root, {
    recursive: true,
    filter: (source) => !/[\\/](public|\.handset)$/.test(source),
  });
  return root;
}

/** The smallest project that builds, with further files. */
export function smallProject(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const root = temporaryFolder();
  write(root, {
    'app/assets/config.xml': '<widget xmlns="http://www.w3.org/ns/widgets"><name>small</name></widget>',
    'app/assets/icon.png': readFileSync(path.join(PACKAGE, 'scaffold/app/assets/icon.png')),
    'app/assets/light/css/light.css': 'body { color: black; }\n',
    'app/index.pug':
      'doctype html\nhtml\n  head\n    link(rel="stylesheet" href="light/css/light.css")\n  body\n    p#text small\n    script(src="javascripts/vendor.js")\n    script(src="javascripts/templates.js")\n    script(src="javascripts/app.js")\n',
    'app/main.js': 'this.started = true;\n',
    ...files,
  });
  return root;
}

/** Write files below a folder. */
export function write(root: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(root, ...name.split('/'));
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}

/** All files below a folder with their contents, by name with forward slashes. */
export function tree(root: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    files.set(path.relative(root, file).split(path.sep).join('/'), readFileSync(file));
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function text(root: string, name: string): string {
  return readFileSync(path.join(root, name), 'utf8');
}
