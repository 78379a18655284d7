import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fetchedOnce } from '../../scripts/test/fetched-once.ts';
import { runNpm } from './run-npm.ts';

/** The vendor's own TypeScript SDK. */
export const VENDOR_SDK = 'bedrock-agentcore@0.4.4';
/** The official SDK of the Model Context Protocol. */
export const MCP_SDK = '@modelcontextprotocol/sdk@1.32.2';
/** A framework that many agents are written in. */
export const EXPRESS = 'express@5.3.0';
/** The official conformance tests of the Model Context Protocol. */
export const MCP_CONFORMANCE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';

/**
 * A folder whose node_modules holds a package with what it depends on, none of it in our own lock file. Undefined where it cannot
 * be had (said on stderr): its tests are skipped then.
 */
export function npmPackage(name: string): Promise<string | undefined> {
  return fetchedOnce({
    name: `npm-${folderName(name)}`,
    what: name,
    async fill(folder) {
      await writeFile(resolve(folder, 'package.json'), '{"private":true}');
      const flags = [
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--omit=peer',
        '--legacy-peer-deps',
        '--prefer-offline',
      ];
      await runNpm(folder, 'install', ...flags, name);
    },
  });
}

/** `@scope/name@1.0.0` → `scope-name-1.0.0` */
export function folderName(name: string): string {
  return name.replace(/^@/, '').replace(/[/@]/g, '-');
}
