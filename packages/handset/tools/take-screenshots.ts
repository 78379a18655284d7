// Takes the pictures of the guide, in Chromium at 240 × 400: node tools/take-screenshots.ts
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { launchChromium } from '../src/browser/launch.ts';
import { buildOnce } from '../src/build/build-once.ts';
import { DEVICES } from '../src/preview/devices.ts';
import { openPreview } from '../src/preview/preview.ts';
import { openProject } from '../src/project/project.ts';
import { startProxy } from '../src/proxy/proxy-server.ts';
import { startDevServer } from '../src/server/dev-server.ts';

const root = path.resolve(import.meta.dirname, '../examples/news-reader');
const folder = path.resolve(import.meta.dirname, '../../../docs/images/handset');
mkdirSync(folder, { recursive: true });
const shot = (page: Page, name: string) => page.screenshot({ path: path.join(folder, `${name}.png`) });

const { assembly } = await buildOnce(await openProject(root), { production: true });
const server = await startDevServer({ root, host: 'localhost', port: 0, live: false });
const { page, close } = await openPreview({ url: server.url, device: DEVICES.touch, headless: true, env: process.env });
await shot(page, 'list');
await page.click('#more-1');
await shot(page, 'lead');
await page.click('.open:has-text("Apples")');
await shot(page, 'detail');
await page.click('#search');
await page.fill('#words', 'harbour');
await page.click('button:has-text("Find")');
await shot(page, 'search');
await page.click('.options');
await page.click('#settings');
await shot(page, 'settings');
await page.click('label:has-text("night")');
await shot(page, 'settings-night');
await page.click('#back');
await shot(page, 'list-night');
await close();
await server.close();

const browser = await launchChromium({ headless: true, webSecurity: true, env: process.env });
const proxy = await startProxy({
  browser,
  outputs: assembly.outputs ?? new Map(),
  device: DEVICES.touch,
  host: 'localhost',
  port: 0,
  preview: true,
  visits: 2,
  idle: 60_000,
  onExchange: () => undefined,
  onRefused: () => undefined,
  onPageError: () => undefined,
});
const preview = await browser.newPage({ viewport: { width: 980, height: 500 } });
await preview.goto(`${proxy.url}/preview`);
const phone = preview.frameLocator('#phone');
await phone.locator('#more-1').click();
await phone.locator('.tab:has-text("Nature")').click();
await phone.locator('.tab.on:has-text("Nature")').waitFor();
await phone.locator('.open:has-text("Apples")').click();
await phone.locator('article').waitFor();
await preview.locator('tr.trip').nth(1).waitFor();
await shot(preview, 'proxy-preview');
await proxy.close();
await browser.close();
