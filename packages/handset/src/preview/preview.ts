import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../browser/launch.ts';
import { ProblemError } from '../problem.ts';
import { type Device, NO_SCROLLBARS, screenOf } from './devices.ts';

export interface PreviewOptions {
  readonly url: string;
  readonly device: Device;
  readonly headless: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Preview {
  readonly browser: Browser;
  readonly page: Page;
  /** Resolves when the window was closed. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

const LOAD_MS = 20_000;

/**
 * Open a page in Chromium as a device shows it: its viewport, web security off, and a profile that is thrown away. Throws
 * `failed` if nothing answers at the address.
 */
export async function openPreview({ url, device, headless, env }: PreviewOptions): Promise<Preview> {
  const frame = { width: device.width + 40, height: device.height + 120 };
  const browser = await launchChromium({
    headless,
    webSecurity: false,
    env,
    args: [`--window-size=${frame.width},${frame.height}`, NO_SCROLLBARS],
  });
  try {
    const context = await browser.newContext(screenOf(device));
    const page = await context.newPage();
    const closed = new Promise<void>((resolve) => {
      page.once('close', () => resolve());
      browser.once('disconnected', () => resolve());
    });
    await page.goto(url, { timeout: LOAD_MS }).catch((error: unknown) => {
      const [why = ''] = String(error instanceof Error ? error.message : error).split('\n');
      throw new ProblemError('failed', {
        message: `${url} does not open: ${why.replace(/^page\.goto: /, '')}`,
        remedy: 'Check the address, and that something answers there.',
      });
    });
    return { browser, page, closed, close: () => browser.close() };
  } catch (error) {
    await browser.close();
    throw error;
  }
}
