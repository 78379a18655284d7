import { spawnSync } from 'node:child_process';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { findChromium } from '../../src/browser/find-chromium.ts';
import { launchChromium } from '../../src/browser/launch.ts';

/** Path of Chromium; on a bare Debian machine it is installed first, loudly. A test never passes for lack of a browser. */
export function requireChromium(): string {
  try {
    return findChromium(process.env);
  } catch {
    process.stderr.write(
      '\nhandset tests: Chromium is missing; installing it with apt-get (this takes a minute or two)\n',
    );
    const apt = (args: readonly string[]) =>
      spawnSync('apt-get', args, { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
    apt(['update', '-q']);
    const { status } = apt(['install', '-y', '-q', '--no-install-recommends', 'chromium']);
    if (status !== 0)
      throw new Error('Chromium is missing and could not be installed: run `apt-get install chromium` as root.');
    return findChromium(process.env);
  }
}

/** One headless Chromium for all tests of a file. */
export function useChromium(webSecurity = true, args: readonly string[] = []): { readonly browser: () => Browser } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    requireChromium();
    browser = await launchChromium({ headless: true, webSecurity, env: process.env, args });
  }, 300_000);
  afterAll(() => browser?.close());
  return {
    browser: () => {
      if (!browser) throw new Error('Chromium was not started.');
      return browser;
    },
  };
}
