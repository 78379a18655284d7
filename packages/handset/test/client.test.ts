import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parse } from 'acorn';
import fc from 'fast-check';
import type { Page } from 'playwright-core';
import { minify } from 'terser';
import { describe, expect, it, onTestFinished } from 'vitest';
import { noDefinitions } from '../src/lint/definitions.ts';
import { checkScript } from '../src/lint/es5.ts';
import { CLIENT_EXAMPLES, exampleIndex, examplePage } from '../tools/client-examples.ts';
import { browserRuntime } from '../tools/copy-vendor.ts';
import { useChromium } from './support/chromium.ts';
import { PACKAGE } from './support/project.ts';

const { browser } = useChromium();
const FOLDER = path.join(PACKAGE, 'client');
const source = readFileSync(path.join(FOLDER, 'handset.js'), 'utf8');

async function open(file: string): Promise<Page> {
  const context = await browser().newContext({ viewport: { width: 240, height: 400 }, hasTouch: true, isMobile: true });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(pathToFileURL(path.join(FOLDER, file)).href);
  return page;
}

describe('the client library', () => {
  it('is ES5 and under 6 KB minified', async () => {
    parse(source, { ecmaVersion: 5 });
    const { code = '' } = await minify(source, { ecma: 5 });
    expect(code.length).toBeLessThan(6 * 1024);
    parse(code, { ecmaVersion: 5 });
  });

  it.each(['client/handset.js', 'browser/round-trip.js', 'scaffold/vendor/pug_runtime.js'])(
    '%s, which runs on phones and in their pages, asks for nothing but ES5',
    (file) => {
      const text = readFileSync(path.join(PACKAGE, file), 'utf8');
      const found = (code: string) => {
        const place = (line: number) => ({ file, line });
        const script = { kind: 'file' as const, code, place, sourceLine: () => '' };
        // The library itself is what hears of touches.
        return checkScript(script, noDefinitions(), new Set())
          .filter((problem) => problem.code !== 'lint-unsupported')
          .map(({ line, message }) => [line, message]);
      };
      // The lint that is asked here would find it.
      expect(found(`${text}\n[1].includes(1);`)).toHaveLength(1);
      expect(found(text)).toEqual([]);
    },
  );

  it('works where JavaScript has nothing but ES5 to offer', async () => {
    const page = await browser().newPage();
    onTestFinished(() => page.close());
    await page.setContent('<p id="a">a</p>');
    await page.evaluate(`delete Object.hasOwn; delete Object.assign; delete Array.from; delete window.Promise;`);
    expect(await page.evaluate(`typeof Object.hasOwn`)).toBe('undefined');
    await page.evaluate(`${source}; handset.run("handset.hide('#a')")`);
    expect(await page.evaluate(`document.getElementById('a').style.display`)).toBe('none');
  });

  it('leaks no global but its two names', async () => {
    const page = await open('examples/show.html');
    const added = await page.evaluate(`(() => {
      const frame = document.body.appendChild(document.createElement('iframe'));
      const before = new Set(Object.getOwnPropertyNames(frame.contentWindow));
      return Object.getOwnPropertyNames(window).filter((name) => !before.has(name) && !/^\\d+$/.test(name) && !document.getElementById(name));
    })()`);
    expect(added).toEqual(['handset', 'mwl']);
  });

  it('is the file that the scaffold and the example carry, and so is the template runtime', () => {
    for (const folder of ['scaffold', 'examples/news-reader']) {
      expect(readFileSync(path.join(PACKAGE, folder, 'vendor/handset.js'), 'utf8')).toBe(source);
      expect(readFileSync(path.join(PACKAGE, folder, 'vendor/pug_runtime.js'), 'utf8')).toBe(browserRuntime());
    }
  });

  it('has a live page and a line in the readme for each function', async () => {
    const page = await open('examples/show.html');
    const functions = (await page.evaluate(
      'Object.keys(handset).filter((n) => typeof handset[n] === "function")',
    )) as string[];
    const others = ['parse', 'run', 'answer'];
    expect(CLIENT_EXAMPLES.map((e) => e.name).sort()).toEqual(functions.filter((n) => !others.includes(n)).sort());
    const readme = readFileSync(path.join(FOLDER, 'README.md'), 'utf8');
    for (const name of functions) expect(readme).toContain(`\`${name}(`);
    const files = ['index.html', 'examples.css', ...CLIENT_EXAMPLES.map((e) => `${e.name}.html`)];
    expect(readdirSync(path.join(FOLDER, 'examples')).sort()).toEqual(files.sort());
    expect(readFileSync(path.join(FOLDER, 'examples/index.html'), 'utf8')).toBe(exampleIndex());
  });

  it.each(CLIENT_EXAMPLES)('$name works on its page', async (example) => {
    expect(readFileSync(path.join(FOLDER, `examples/${example.name}.html`), 'utf8')).toBe(examplePage(example));
    const page = await open(`examples/${example.name}.html`);
    const { touch } = example;
    if (!('wait' in touch)) expect(await page.evaluate(example.after)).toBe(false);
    if ('tap' in touch) await page.tap(touch.tap);
    else if ('key' in touch) await page.keyboard.press(touch.key);
    else if ('swipe' in touch) await finger(page, touch.swipe, -80, 0);
    else if ('press' in touch) await finger(page, touch.press, 0, 700);
    await page.waitForFunction(example.after);
  });
});

/** Put a finger down, move it sideways, hold it, and lift it, or have it taken over by the system. */
async function finger(
  page: Page,
  selector: string,
  byX: number,
  milliseconds: number,
  end: 'touchEnd' | 'touchCancel' = 'touchEnd',
): Promise<void> {
  const box = await page.locator(selector).boundingBox();
  const session = await page.context().newCDPSession(page);
  const x = (box?.x ?? 0) + (box?.width ?? 0) / 2;
  const y = (box?.y ?? 0) + (box?.height ?? 0) / 2;
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd' | 'touchCancel', dx: number) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints: type === end ? [] : [{ x: x + dx, y }] });
  await touch('touchStart', 0);
  if (byX) await touch('touchMove', byX);
  if (end === 'touchCancel') await touch(end, byX);
  if (milliseconds) await page.waitForTimeout(milliseconds);
  if (end === 'touchEnd') await touch(end, byX);
}

describe('a long press', () => {
  it('is none where the finger moves, or is taken over by the system', async () => {
    const page = await open('examples/show.html');
    await page.evaluate(`document.body.innerHTML = '<p id="a" style="touch-action: none">a</p>'; window.presses = 0;
      handset.onLongPress('#a', function () { window.presses += 1; })`);
    const presses = () => page.evaluate('window.presses');
    await finger(page, '#a', 0, 700);
    expect(await presses()).toBe(1);
    await finger(page, '#a', 5, 700);
    expect(await presses()).toBe(2);
    await finger(page, '#a', 40, 700);
    expect(await presses()).toBe(2);
    await finger(page, '#a', 0, 700, 'touchCancel');
    expect(await presses()).toBe(2);
  });
});

describe('shortcuts on ordinary markup', () => {
  const markup =
    '<ul><li id="li">a</li></ul><button id="button" value="v">b</button><input id="input" value="c"><p id="p" class="one\n\ttwo"></p><svg id="svg" class="on"></svg>';
  it.each([
    ["handset.clear('#li')", "document.getElementById('li').outerHTML", '<li id="li"></li>'],
    [
      "handset.clear('#button')",
      "document.getElementById('button').outerHTML",
      '<button id="button" value="v"></button>',
    ],
    ["handset.clear('#input')", "document.getElementById('input').value", ''],
    ["handset.toggleClass('#p', 'one')", "document.getElementById('p').className", 'two'],
    ["handset.switchClass('#p', 'two', 'three')", "document.getElementById('p').className", 'one three'],
    ["handset.addClass('#p', 'two')", "document.getElementById('p').className", 'one\n\ttwo'],
    ["handset.toggleClass('#svg', 'on')", "document.getElementById('svg').getAttribute('class')", ''],
    ["handset.iterateClass('#svg', 'on', 'off')", "document.getElementById('svg').getAttribute('class')", 'off'],
  ])('%s', async (action, look, expected) => {
    const page = await open('examples/show.html');
    await page.setContent(markup);
    expect(await page.evaluate((text) => Reflect.get(globalThis, 'handset').run(text), action)).toBe(true);
    expect(await page.evaluate(look)).toBe(expected);
  });
});

describe('action texts', () => {
  it('are made of shortcuts with literals and nothing else', async () => {
    const page = await open('examples/show.html');
    const parsed = (text: string) => page.evaluate((given) => Reflect.get(globalThis, 'handset').parse(given), text);
    expect(await parsed("handset.show('#a'); handset.setGroupNext(\".r\", 'on', '', -1)")).toEqual([
      ['show', ['#a']],
      ['setGroupNext', ['.r', 'on', '', -1]],
    ]);
    expect(await parsed("handset.timer('t', 10.5, 'handset.show(\\'#a\\')', true); return false")).toEqual([
      ['timer', ['t', 10.5, "handset.show('#a')", true]],
    ]);
    const text = `handset.show('caf\\u00e9 \\x41\\'\\\\\\n\\"')`;
    expect(await parsed(text)).toEqual([['show', ['café A\'\\\n"']]]);
    const refused = [
      "handset.show('\\u12')",
      "handset.show('\\xg0')",
      "handset.show('\\07')",
      "alert('x')",
      "handset.show('#a') + alert(1)",
      'handset.show(document.cookie)',
      "handset.run('x')",
      "handset.constructor('alert(1)')",
      "handset.show('#a'), alert(1)",
      'handset.show(`x`)',
      "handset.hasOwnProperty('x')",
      "handset.show('#a'",
      "handset['show']('#a')",
    ];
    for (const text of refused) expect([text, await parsed(text)]).toEqual([text, null]);
  });

  it('are never evaluated, whatever they say', async () => {
    const page = await open('examples/show.html');
    const texts = fc.sample(
      fc
        .array(
          fc.oneof(
            fc.constantFrom(
              'handset.show(',
              "'",
              '"',
              '\\',
              ')',
              ';',
              ',',
              '#a',
              'ran=1',
              '(function(){ran=1})()',
              '`',
              'true',
              '-1',
              ' ',
            ),
            fc.string(),
          ),
          { maxLength: 12 },
        )
        .map((parts) => parts.join('')),
      500,
    );
    const result = await page.evaluate((given) => {
      for (const text of given) {
        try {
          Reflect.get(globalThis, 'handset').run(text);
        } catch {
          // A selector may be malformed; what matters is that nothing ran.
        }
      }
      return Reflect.has(globalThis, 'ran');
    }, texts);
    expect(result).toBe(false);
  });
});
