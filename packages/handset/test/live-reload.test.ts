import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { useChromium } from './support/chromium.ts';
import { startHandset } from './support/cli.ts';
import { smallProject, text, write } from './support/project.ts';

const { browser } = useChromium();

/** A project under `handset watch --server`, open in Chromium. */
async function watched(files = {}) {
  const root = smallProject(files);
  const running = startHandset(root, ['watch', '--server', '--port', '0']);
  const [, url = ''] = await running.output(/at (http:\S+)/);
  await running.output(/compiled in|not compiled/);
  const context = await browser().newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(url);
  // A page that was loaded again has forgotten this.
  const mark = () => page.evaluate('window.kept = true');
  const kept = () => page.evaluate('window.kept === true');
  await mark();
  return { root, running, page, mark, kept };
}

describe('the page under watch --server', () => {
  it('is loaded again after a build', async () => {
    const { root, page, kept } = await watched();
    write(root, { 'app/index.pug': text(root, 'app/index.pug').replace('p#text small', 'p#text larger') });
    await page.getByText('larger').waitFor();
    expect(await kept()).toBe(false);
  });

  it('swaps a style sheet in place', async () => {
    const { root, page, kept } = await watched();
    const colour = () => page.evaluate('getComputedStyle(document.body).color');
    expect(await colour()).toBe('rgb(0, 0, 0)');
    write(root, { 'app/assets/light/css/light.css': 'body { color: rgb(1, 2, 3); }' });
    await page.waitForFunction('getComputedStyle(document.body).color === "rgb(1, 2, 3)"');
    expect(await page.locator('link').count()).toBe(1);
    expect(await kept()).toBe(true);
  });

  it('leaves one style sheet of saves that come faster than it loads', async () => {
    const { root, page, kept } = await watched();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/build=/, async (route) => {
      await held;
      // One that has a newer one by now is not waited for.
      await route.continue().catch(() => undefined);
    });
    const newest = () => page.evaluate("document.querySelector('link:last-of-type').href");
    for (const red of [1, 2, 3, 4]) {
      const before = await newest();
      write(root, { 'app/assets/light/css/light.css': `body { color: rgb(${red}, 2, 3); }` });
      await page.waitForFunction(`document.querySelector('link:last-of-type').href !== '${before}'`);
    }
    expect(await page.locator('link').count()).toBe(2);
    release();
    await page.waitForFunction('getComputedStyle(document.body).color === "rgb(4, 2, 3)"');
    await page.waitForFunction('document.querySelectorAll("link").length === 1');
    expect(await kept()).toBe(true);
  });

  it('shows an error over the page with file, line and code, and takes it away when it is mended', async () => {
    const { root, running, page } = await watched();
    write(root, { 'app/list.coffee': 'a = 1\nb = <wrong\n' });
    const overlay = page.locator('#handset-problems');
    await overlay.waitFor();
    const shown = await overlay.textContent();
    expect(shown).toContain('app/list.coffee:2:5');
    expect(shown).toContain('> 2 | b = <wrong');
    expect(await page.locator('#text').textContent()).toBe('small');
    await running.output(/error app\/list\.coffee:2:5/);
    // A page that is opened now sees the last good build and the error.
    await page.reload();
    await overlay.waitFor();
    expect(await page.locator('#text').textContent()).toBe('small');
    write(root, { 'app/list.coffee': 'document.title = "mended"' });
    await page.waitForFunction('document.title === "mended"');
    await overlay.waitFor({ state: 'detached' });
  });

  it('shows the error of a first build that fails, and the page when it succeeds', async () => {
    const { root, page } = await watched({ 'app/main.js': 'var = ;' });
    await page.locator('#handset-problems').waitFor();
    write(root, { 'app/main.js': 'var ok;' });
    await page.getByText('small').waitFor();
  });

  it('shows markup in an error as text', async () => {
    const { root, page } = await watched();
    write(root, { 'app/index.pug': 'p= "<img src=x onerror=hacked=1>" +' });
    await page.locator('#handset-problems').waitFor();
    expect(await page.locator('#handset-problems img').count()).toBe(0);
  });

  it('holds no connection while nobody looks at it, and is current when somebody does', async () => {
    const { root, running, page, kept } = await watched();
    const show = (hidden: boolean) =>
      `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'));`;
    const context = page.context();
    await context.addInitScript(show(true));
    // A browser has six connections to one server.
    const others = [];
    for (let i = 0; i < 7; i += 1) {
      const other = await context.newPage();
      await other.goto(page.url());
      others.push(other);
    }
    await page.evaluate(show(true));
    const before = running.written.length;
    write(root, { 'app/index.pug': text(root, 'app/index.pug').replace('p#text small', 'p#text larger') });
    await running.output(/compiled in/, before);
    expect(await page.locator('#text').textContent()).toBe('small');
    expect(await kept()).toBe(true);
    for (const shown of [page, ...others.slice(-1)]) {
      await shown.evaluate(show(false));
      await shown.getByText('larger').waitFor();
    }
  });

  it('connects again to a server that was started anew', async () => {
    const { root, running, page, kept } = await watched();
    const port = new URL(page.url()).port;
    await running.stop();
    write(root, { 'app/index.pug': 'html\n  body\n    p after the restart' });
    const again = startHandset(root, ['watch', '--server', '--port', port]);
    await again.output(/compiled in/);
    await page.getByText('after the restart').waitFor();
    expect(await kept()).toBe(false);
  });

  it('serves what is on disk', async () => {
    const { root, page } = await watched();
    expect(await page.evaluate('fetch("/config.xml").then(r => r.text())')).toBe(
      text(root, path.join('app', 'assets', 'config.xml')),
    );
  });
});
