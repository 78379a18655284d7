import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { imageSize } from '../src/lint/image-size.ts';
import { DEVICES } from '../src/preview/devices.ts';
import { openPreview } from '../src/preview/preview.ts';
import { startDevServer } from '../src/server/dev-server.ts';
import { useChromium } from './support/chromium.ts';
import { handset } from './support/cli.ts';
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

  it('is 240 × 400 unless something else is asked for', async () => {
    const file = path.join(temporaryFolder(), 'page.png');
    await handset(smallProject(), ['preview', '--screenshot', file]);
    expect(imageSize(readFileSync(file))).toEqual({ width: 240, height: 400 });
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
