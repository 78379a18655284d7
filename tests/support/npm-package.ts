import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fetchedOnce } from './fetched-once.ts';

/** The vendor's own TypeScript SDK. */
export const VENDOR_SDK = 'bedrock-agentcore@0.4.4';
/** The official SDK of the Model Context Protocol. */
export const MCP_SDK = '@modelcontextprotocol/sdk@1.32.2';

/**
 * A folder whose node_modules holds a package with what it depends on, none of it in our own lock file. Undefined where it cannot
 * be had (said on stderr): its tests are skipped then.
 */
export function npmPackage(name: string): Promise<string | undefined> {
  return fetchedOnce({
    package: name,
    prefix: 'npm',
    async fill(folder, npm) {
      await writeFile(resolve(folder, 'package.json'), '{"private":true}');
      const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=peer', '--legacy-peer-deps'];
      await npm('install', ...flags, name);
    },
  });
}
