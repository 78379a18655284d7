import { readFileSync } from 'node:fs';

const inSources = import.meta.url.endsWith('.ts');

/** The folder of this package. The sources and the files that are published stand one folder below it. */
export const PACKAGE_FOLDER = new URL('../', import.meta.url);

/** The program of a thread by its path in src/; in the published package every program stands directly in dist/. */
export function threadProgram(source: string): URL {
  return new URL(inSources ? source : source.replace(/^.*\/(.*)\.ts$/, '$1.js'), import.meta.url);
}

/** What is read of package.json. */
export interface PackageManifest {
  readonly version: string;
  /** Exact versions; the compilers among them are carried inside the published package. */
  readonly devDependencies: Readonly<Record<string, string>>;
}

export function packageManifest(): PackageManifest {
  return JSON.parse(readFileSync(new URL('package.json', PACKAGE_FOLDER), 'utf8')) as PackageManifest;
}
