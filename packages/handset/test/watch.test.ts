import { cpSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createPublicFolder } from '../src/build/public-folder.ts';
import { openProject } from '../src/project/project.ts';
import { type BuildReport, startWatching } from '../src/watch/watch-session.ts';
import { handset, startHandset } from './support/cli.ts';
import { PACKAGE, scaffoldCopy, smallProject, temporaryFolder, text, tree, write } from './support/project.ts';

/** Watch a project; `next` resolves with the build that follows `act`. */
async function watching(root: string) {
  const reports: BuildReport[] = [];
  const session = await startWatching({
    project: await openProject(root),
    production: false,
    folder: createPublicFolder(root),
    onBuild: (r) => reports.push(r),
  });
  onTestFinished(() => session.close());
  return {
    reports,
    async next(act: () => void): Promise<BuildReport> {
      const before = reports.length;
      act();
      await vi.waitFor(() => expect(reports.length).toBeGreaterThan(before), { timeout: 20_000, interval: 5 });
      return reports[before] as BuildReport;
    },
    /** Do something and wait for what must come of it, in however many builds. */
    async settle(act: () => void, done: () => void): Promise<void> {
      act();
      await vi.waitFor(done, { timeout: 20_000, interval: 10 });
    },
  };
}

describe('handset watch', () => {
  it('builds after each save and writes only what changed', async () => {
    const root = scaffoldCopy();
    const { reports, next } = await watching(root);
    expect(reports).toMatchObject([{ ok: true, compiled: 6 }]);
    const report = await next(() => write(root, { 'app/testJs.js': 'var changed = 1;' }));
    expect(report).toMatchObject({ ok: true, compiled: 1 });
    expect(report.written).toEqual(['javascripts/app.js', 'javascripts/app.js.map']);
    expect(text(root, 'public/javascripts/app.js')).toContain('var changed = 1;');
  });

  it('does nothing for a save without a change', async () => {
    const root = smallProject();
    const { reports, next } = await watching(root);
    write(root, { 'app/main.js': 'this.started = true;\n' });
    await next(() => write(root, { 'app/other.js': 'var other;' }));
    expect(reports.slice(1).flatMap((r) => r.written)).toEqual(['javascripts/app.js', 'javascripts/app.js.map']);
  });

  it('compiles anew what includes a changed file, and what waits for a missing one', async () => {
    const root = smallProject({ 'app/index.pug': 'include _a', 'app/_a.pug': 'include _b', 'app/_b.pug': 'p one' });
    const { next } = await watching(root);
    await next(() => write(root, { 'app/_b.pug': 'p two' }));
    expect(text(root, 'public/index.html')).toContain('two');
    const broken = await next(() => rmSync(path.join(root, 'app/_b.pug')));
    expect(broken.problems[0]).toMatchObject({ code: 'include-missing', file: 'app/_a.pug', line: 1 });
    expect(text(root, 'public/index.html')).toContain('two');
    expect(await next(() => write(root, { 'app/_b.pug': 'p three' }))).toMatchObject({ ok: true });
    expect(text(root, 'public/index.html')).toContain('three');
  });

  it('keeps the last good build through an error and recovers without a restart', async () => {
    const root = smallProject();
    const { next } = await watching(root);
    const before = [...tree(path.join(root, 'public'))];
    const broken = await next(() => write(root, { 'app/a.coffee': 'a = (\n' }));
    expect(broken).toMatchObject({
      ok: false,
      written: [],
      problems: [{ file: 'app/a.coffee', line: 1, frame: expect.stringContaining('> 1 | a = (') }],
    });
    expect([...tree(path.join(root, 'public'))]).toEqual(before);
    expect(await next(() => write(root, { 'app/a.coffee': 'a = (1)\n' }))).toMatchObject({ ok: true, problems: [] });
  });

  it('lives on when config.xml goes and comes back', async () => {
    const root = smallProject();
    const { next } = await watching(root);
    const config = text(root, 'app/assets/config.xml');
    expect((await next(() => rmSync(path.join(root, 'app/assets/config.xml')))).problems[0]?.code).toBe(
      'config-missing',
    );
    expect(await next(() => write(root, { 'app/assets/config.xml': config }))).toMatchObject({ ok: true });
  });

  it('lives on when public/ cannot be written and when it can again', async () => {
    const root = smallProject({ public: 'a file stands where the folder should be' });
    const { next, reports } = await watching(root);
    expect(reports[0]).toMatchObject({ ok: false, problems: [{ code: 'output-readonly' }] });
    const mended = await next(() => {
      rmSync(path.join(root, 'public'));
      write(root, { 'app/main.js': 'this.mended = true;\n' });
    });
    expect(mended.ok).toBe(true);
    expect(text(root, 'public/javascripts/app.js')).toContain('this.mended');
  });

  it.each([
    ['a vendor file with a syntax error', 'vendor/lib.js', 'var b = ;', 'script-syntax'],
    ['a source that is not UTF-8', 'app/main.js', Buffer.from('var b = "\xe9";', 'latin1'), 'not-utf8'],
    ['a template that includes itself', 'app/index.pug', 'include index', 'template-cycle'],
    ['malformed XML', 'app/assets/config.xml', '<widget>', 'config-malformed'],
  ])('lives on through %s', async (_what, file, content, code) => {
    const root = smallProject({ 'vendor/lib.js': 'var b;\n' });
    const { next } = await watching(root);
    const good = text(root, file);
    expect(await next(() => write(root, { [file]: content }))).toMatchObject({ ok: false, problems: [{ code, file }] });
    expect(text(root, 'public/index.html')).toContain('small');
    expect(await next(() => write(root, { [file]: good }))).toMatchObject({ ok: true });
  });

  it('follows no link that is made while it watches and leads outside or to a folder', async () => {
    const outside = temporaryFolder();
    const root = smallProject({ 'app/assets/a.txt': 'a' });
    const { next } = await watching(root);
    const link = (target: string, name: string) => next(() => symlinkSync(target, path.join(root, 'app/assets', name)));
    // The channel is open: a link to a file of the application is followed.
    expect(await link('a.txt', 'b.txt')).toMatchObject({ ok: true, written: ['b.txt'] });
    expect(await link(outside, 'folder')).toMatchObject({ ok: true, problems: [{ code: 'folder-link' }] });
    expect(await link(path.join(PACKAGE, 'package.json'), 'c.txt')).toMatchObject({
      ok: false,
      problems: [{ code: 'link-outside' }, {}],
    });
    const mended = await next(() => rmSync(path.join(root, 'app/assets/c.txt')));
    expect(mended).toMatchObject({ ok: true, problems: [{ code: 'folder-link' }] });
    expect(await next(() => rmSync(path.join(root, 'app/assets/folder')))).toMatchObject({ ok: true, problems: [] });
    expect([...tree(path.join(root, 'public')).keys()].filter((name) => /folder|c\.txt/.test(name))).toEqual([]);
  });

  it('makes one build of a storm of saves', async () => {
    const root = smallProject();
    const { reports, next } = await watching(root);
    const files = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`app/m/f${i}.js`, `var f${i};`]));
    await next(() => write(root, files));
    expect(reports.length).toBe(2);
    expect(reports[1]?.compiled).toBe(300);
  });

  it('sees new folders, renamed folders and removed folders with all that is in them', async () => {
    const root = smallProject();
    const { settle } = await watching(root);
    const names = () => [...tree(path.join(root, 'public')).keys()];
    const images = path.join(PACKAGE, 'scaffold/app/assets/light/images');
    await settle(
      () => cpSync(images, path.join(root, 'app/assets/new/images'), { recursive: true }),
      () => expect(names()).toContain('new/images/tab_bg.png'),
    );
    await settle(
      () => renameSync(path.join(root, 'app/assets/new'), path.join(root, 'app/assets/old')),
      () => {
        expect(names()).toContain('old/images/tab_bg.png');
        expect(names().filter((n) => n.startsWith('new/'))).toEqual([]);
      },
    );
    await settle(
      () => write(root, { 'app/assets/old/images/deep/x.txt': 'x' }),
      () => expect(names()).toContain('old/images/deep/x.txt'),
    );
    await settle(
      () => rmSync(path.join(root, 'app/assets/old'), { recursive: true }),
      () => expect(names().filter((n) => n.startsWith('old/'))).toEqual([]),
    );
    await settle(
      () => write(root, { 'vendor/lib.js': 'var lib;' }),
      () => expect(text(root, 'public/javascripts/vendor.js')).toContain('var lib;'),
    );
  });

  it('loses no folder that is removed, or changed for another, and made again at once', async () => {
    const root = smallProject({ 'app/deep/inner/one.js': 'var one;' });
    const { settle } = await watching(root);
    const deep = path.join(root, 'app/deep');
    const app = () => [...text(root, 'public/javascripts/app.js').matchAll(/var (\w+);/g)].map((m) => m[1]);
    // As `git checkout` of a branch does that has another file there.
    await settle(
      () => {
        rmSync(deep, { recursive: true });
        write(root, { 'app/deep/inner/two.js': 'var two;' });
      },
      () => expect(app()).toEqual(['two']),
    );
    await settle(
      () => write(root, { 'app/deep/inner/two.js': 'var three;' }),
      () => expect(app()).toEqual(['three']),
    );
    const other = temporaryFolder();
    write(other, { 'deep/inner/four.js': 'var four;' });
    await settle(
      () => {
        renameSync(deep, path.join(other, 'old'));
        renameSync(path.join(other, 'deep'), deep);
      },
      () => expect(app()).toEqual(['four']),
    );
    await settle(
      () => write(root, { 'app/deep/inner/four.js': 'var five;' }),
      () => expect(app()).toEqual(['five']),
    );
  });

  it('ignores what editors leave behind', async () => {
    const root = smallProject();
    const { reports, next } = await watching(root);
    write(root, { 'app/.main.js.swp': 'x', 'app/main.js~': 'x', 'app/4913': 'x' });
    await next(() => write(root, { 'app/assets/x.txt': 'x' }));
    expect(reports.slice(1).flatMap((r) => r.written)).toEqual(['x.txt']);
  });

  it('brings public/ back if it is deleted', async () => {
    const root = smallProject();
    const { next } = await watching(root);
    rmSync(path.join(root, 'public'), { recursive: true });
    await next(() => write(root, { 'app/main.js': 'var again;' }));
    expect(tree(path.join(root, 'public')).has('config.xml')).toBe(true);
  });

  it('brings back its own scripts after a production build beside it', async () => {
    const root = smallProject({ 'vendor/lib.js': 'var lib = function (longName) { return longName; };\n' });
    const { next } = await watching(root);
    const before = text(root, 'public/javascripts/vendor.js');
    await handset(root, ['build', '--production']);
    expect(text(root, 'public/javascripts/vendor.js')).not.toContain('longName');
    await next(() => write(root, { 'app/main.js': 'var again;' }));
    expect(text(root, 'public/javascripts/vendor.js')).toBe(before);
    expect(tree(path.join(root, 'public')).has('javascripts/vendor.js.map')).toBe(true);
    expect((await handset(root, ['build', '--production'])).stdout).not.toContain('did not write');
    expect([...tree(path.join(root, 'public')).keys()].filter((name) => name.endsWith('.map'))).toEqual([]);
  });

  it('logs `compiled in <n>ms` after each build, and JSON lines when asked', async () => {
    const root = smallProject();
    const people = startHandset(root, ['watch']);
    await people.output(/compiled in \d+ms/);
    const length = people.written.length;
    write(root, { 'app/main.js': 'var = 1' });
    await people.output(
      /error app\/main\.js:1:5 — [\s\S]*> 1 \| var = 1[\s\S]*not compiled: 1 error; the last good build stays/,
      length,
    );
    write(root, { 'app/main.js': 'var ok = 1' });
    await people.output(/compiled in \d+ms \(javascripts\/app\.js\)/, length);
    expect((await people.stop()).status).toBe(0);

    const programs = startHandset(root, ['watch', '--json']);
    await programs.output(/"event":"watching"/);
    const { stdout } = await programs.stop();
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { event: string }).event),
    ).toEqual(['build', 'watching']);
  });

  it('says a warning once, and not again with each save', async () => {
    const root = smallProject({ 'app/data.json': '{}' });
    const running = startHandset(root, ['watch']);
    await running.output(/watching app\//);
    write(root, { 'app/main.js': 'var changed;' });
    await running.output(/\(javascripts\/app\.js\)/);
    expect(running.written.match(/Nothing handles/g)).toHaveLength(1);
  });

  it('ends in peace when whoever reads what it writes has gone', async () => {
    const root = smallProject();
    const running = startHandset(root, ['watch']);
    await running.output(/watching app\//);
    running.child.stdout?.destroy();
    write(root, { 'app/main.js': 'var said_to_nobody;' });
    const { status, stderr } = await running.ended;
    expect([status, stderr]).toEqual([0, '']);
  });
});
