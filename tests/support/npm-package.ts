import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');

/** The vendor's own TypeScript SDK. */
export const VENDOR_SDK = 'bedrock-agentcore@0.4.4';
/** The official SDK of the Model Context Protocol. */
export const MCP_SDK = '@modelcontextprotocol/sdk@1.32.2';

/**
 * A folder whose node_modules holds a package with what it depends on, none of it in our own lock file. Undefined where it cannot
 * be had (said on stderr): its tests are skipped then.
 */
export async function npmPackage(name: string): Promise<string | undefined> {
  const folder = resolve(ROOT, '.cache', `npm-${name.replace(/^@/, '').replace(/[/@]/g, '-')}`);
  if (existsSync(folder)) return folder;
  const partial = `${folder}.${process.pid}`;
  try {
    await mkdir(partial, { recursive: true });
    await writeFile(resolve(partial, 'package.json'), '{"private":true}');
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=peer', '--legacy-peer-deps'];
    await run('npm', ['install', ...flags, name], {
      cwd: partial,
      timeout: 300_000,
      env: { ...process.env, PATH: `${resolve(ROOT, 'node_modules/.bin')}:${process.env.PATH ?? ''}` },
    });
    await rename(partial, folder);
    return folder;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    if (existsSync(folder)) return folder;
    console.error(`SKIPPED: tests with ${name} (it cannot be installed: ${String(error).slice(0, 300)})`);
    return undefined;
  }
}
