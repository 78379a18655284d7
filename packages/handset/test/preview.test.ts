import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { imageSize } from '../src/lint/image-size.ts';
import { DEVICES } from '../src/preview/devices.ts';
import { openPreview } from '../src/preview/preview.ts';
import { startDevServer } from '../src/server/dev-server.ts';
import { useChromium } from './support/chromium.ts';
import { handset, startHandset } from './support/cli.ts';
import { walkThroughNews } from './support/news.ts';
import { newsCopy, scaffoldCopy, smallProject, temporaryFolder } from './support/project.ts';

const { browser } = useChromium();

async function preview(root: string, device: keyof typeof DEVICES = 'touch') {
  expect(await handset(root, ['build'])).toMatchObject({ status: 0 });
  const server = await startDevServer({ root, host: 'localhost', port: 0, live: false });
  const opened = await openPreview({ url: server.url, device: DEVICES[device], headless: true, env: process.env });
  onTestFinished(async () => {
    await opened.close();
    await server.close();
  });
  return { ...opened, url: server.url };
}

const hasXvfb = spawnSync('Xvfb', ['-help']).error === undefined;

/** A display without a screen, for one test. */
function startXvfb(): Promise<string> {
  const child = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '800x600x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill());
  return new Promise((resolve, reject) => {
    child.stdio[3]?.once('data', (number: Buffer) => resolve(`:${number.toString().trim()}`));
    child.once('exit', () => reject(new Error('Xvfb ended')));
  });
}

/** Command lines of the browsers (not of their helper processes) that show on a display. */
function chromiumsOn(display: string): string[] {
  const found: string[] = [];
  for (const id of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${id}/cmdline`, 'utf8');
      const isBrowser = command.includes('--user-data-dir=') && !command.includes('--type=');
      if (isBrowser && readFileSync(`/proc/${id}/environ`, 'utf8').split('\0').includes(`DISPLAY=${display}`))
        found.push(command);
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

/** What a page can measure of its screen; the third is the width that a bar beside it would narrow. */
const LAYOUT = `[innerWidth, innerHeight, document.documentElement.clientWidth, matchMedia('(orientation: portrait)').matches]`;

describe('handset preview', () => {
  it('shows the news reader, which works', async () => {
    const { page } = await preview(newsCopy());
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await walkThroughNews(page);
    expect(errors).toEqual([]);
  });

  it('lets the page read another origin, which a browser with web security does not', async () => {
    const other = createServer((_request, response) => response.end('foreign news'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };
    const read = `fetch('http://127.0.0.1:${port}/').then((r) => r.text(), () => 'refused')`;
    const { page, url } = await preview(smallProject());
    const secure = await browser().newPage();
    await secure.goto(url);
    expect(await secure.evaluate(read)).toBe('refused');
    expect(await page.evaluate(read)).toBe('foreign news');
    await secure.close();
  });

  it.each(Object.entries(DEVICES))('has the viewport of %s', async (name, { width, height, touch }) => {
    const file = path.join(temporaryFolder(), 'page.png');
    const root = scaffoldCopy();
    const { status, stdout } = await handset(root, ['preview', '--device', name, '--screenshot', file, '--json']);
    expect([status, stdout]).toEqual([0, expect.stringContaining(`"width":${width},"height":${height}`)]);
    expect(imageSize(readFileSync(file))).toEqual({ width, height });
    expect(touch).toBe(name.startsWith('touch'));
  });

  it.each(['', "meta(name='viewport' content='width=320')"])(
    'lays out 240 wide with viewport meta "%s"',
    async (meta) => {
      const long = `doctype html\nhtml\n  head\n    ${meta || 'title long'}\n  body\n    div(style='height: 3000px') long\n`;
      const { page } = await preview(smallProject({ 'app/index.pug': long }));
      expect(await page.evaluate(LAYOUT)).toEqual([240, 400, 240, true]);
    },
  );

  it('is 240 × 400 unless something else is asked for', async () => {
    const file = path.join(temporaryFolder(), 'page.png');
    await handset(smallProject(), ['preview', '--screenshot', file]);
    expect(imageSize(readFileSync(file))).toEqual({ width: 240, height: 400 });
  });

  it.skipIf(!hasXvfb)('opens a window on the display (skipped without Xvfb), and ends with its profile', async () => {
    const display = await startXvfb();
    const running = startHandset(smallProject(), ['preview'], { env: { DISPLAY: display, WAYLAND_DISPLAY: '' } });
    await running.output(/showing http:\/\/localhost:\d+ at 240 × 400/);
    const windows = chromiumsOn(display);
    expect(windows).toHaveLength(1);
    expect(windows[0]).toContain('--disable-web-security');
    expect(windows[0]).not.toContain('--headless');
    const profile = /--user-data-dir=([^\0]+)/.exec(windows[0] ?? '')?.[1] ?? '';
    expect(existsSync(profile)).toBe(true);
    expect(await running.stop()).toMatchObject({ status: 0, stderr: '' });
    expect([existsSync(profile), chromiumsOn(display)]).toEqual([false, []]);
  });

  it('begins with a new profile each time', async () => {
    const root = smallProject();
    for (const _time of [1, 2]) {
      const { page, close } = await preview(root);
      expect(await page.evaluate('localStorage.getItem("kept")')).toBeNull();
      await page.evaluate('localStorage.setItem("kept", "yes")');
      await close();
    }
  });

  it('says what is missing', async () => {
    const gone = await handset(smallProject(), ['preview', '--headless'], { HANDSET_CHROMIUM: '/nowhere/chromium' });
    expect(gone.stderr).toMatch(/HANDSET_CHROMIUM names \/nowhere\/chromium[\s\S]*apt-get install chromium/);
    const nobody = await handset(smallProject(), ['preview', '--headless', '--url', 'http://127.0.0.1:1/']);
    expect(nobody.stderr).toMatch(/127\.0\.0\.1:1\/ does not open: net::ERR_\w+ at [^\n]+\n {2}→ Check the address/);
    const broken = await handset(smallProject(), ['preview', '--headless'], { HANDSET_CHROMIUM: '/bin/false' });
    expect(broken.stderr).toMatch(/\/bin\/false does not start/);
    const faulty = await handset(smallProject({ 'app/main.js': 'var = ;' }), ['preview', '--headless']);
    expect([faulty.status, faulty.stdout]).toEqual([1, expect.stringContaining('app/main.js:1:5')]);
    if (process.platform === 'linux') {
      const dark = await handset(smallProject(), ['preview'], { DISPLAY: '', WAYLAND_DISPLAY: '' });
      expect(dark.stderr).toMatch(/no display[\s\S]*--screenshot/);
    }
  });
});
