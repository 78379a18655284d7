import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareNames, extensionOf, projectName, projectPath } from './paths.ts';

describe('project names', () => {
  it('are the same on Linux and Windows', () => {
    expect(projectName('/home/me/app', '/home/me/app/app/index.pug', path.posix)).toBe('app/index.pug');
    expect(projectName('C:\\Users\\me\\app', 'C:\\Users\\me\\app\\app\\index.pug', path.win32)).toBe('app/index.pug');
    expect(projectName('C:\\Users\\me\\app', 'c:\\users\\ME\\app\\app\\a.js', path.win32)).toBe('app/a.js');
    expect(projectName('\\\\server\\share\\app', '\\\\server\\share\\app\\vendor\\a.js', path.win32)).toBe(
      'vendor/a.js',
    );
    expect(projectPath('C:\\app', 'app/templates/a.pug', path.win32)).toBe('C:\\app\\app\\templates\\a.pug');
    expect(projectPath('/app', 'app/templates/a.pug', path.posix)).toBe('/app/app/templates/a.pug');
  });

  it('do not lead outside', () => {
    expect(projectName('/home/me/app', '/home/me/other', path.posix)).toBeUndefined();
    expect(projectName('/home/me/app', '/home/me/app', path.posix)).toBe('');
    expect(projectName('/home/me/app', '/home/me/app/..hidden', path.posix)).toBe('..hidden');
    expect(projectName('C:\\app', 'D:\\app\\a.js', path.win32)).toBeUndefined();
    expect(projectName('C:\\app', 'C:\\other\\a.js', path.win32)).toBeUndefined();
  });

  it('come back as they were, whatever the system', () => {
    const segment = fc.stringMatching(/^[a-zA-Z0-9_-]{1,8}$/);
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), (segments) => {
        const name = segments.join('/');
        expect(projectName('/root', projectPath('/root', name, path.posix), path.posix)).toBe(name);
        expect(projectName('C:\\root', projectPath('C:\\root', name, path.win32), path.win32)).toBe(name);
      }),
    );
  });
});

describe('compareNames', () => {
  it('puts the files of a folder before its subfolders and looks at code units', () => {
    const sorted = ['app/a.js', 'app/B.js', 'app/b.js', 'app/a/z.js', 'app/é.js', 'app/a-b/c.js'].sort(compareNames);
    expect(sorted).toEqual(['app/B.js', 'app/a.js', 'app/b.js', 'app/é.js', 'app/a/z.js', 'app/a-b/c.js']);
  });

  it('is a total order', () => {
    const name = fc
      .array(fc.constantFrom('a', 'b', 'B', 'ab', 'é'), { minLength: 1, maxLength: 4 })
      .map((s) => s.join('/'));
    fc.assert(
      fc.property(name, name, name, (a, b, c) => {
        expect(Math.sign(compareNames(a, b))).toBe(-Math.sign(compareNames(b, a)) || 0);
        expect(compareNames(a, b) === 0).toBe(a === b);
        if (compareNames(a, b) < 0 && compareNames(b, c) < 0) expect(compareNames(a, c)).toBeLessThan(0);
      }),
    );
  });
});

it('extensionOf takes the last part of the last segment', () => {
  expect(['a/b.test.JS', 'a.b/c', '.hidden', 'x.pug'].map(extensionOf)).toEqual(['.js', '', '', '.pug']);
  expect(['a.coffee.md', 'b.1.md', 'README.md'].map(extensionOf)).toEqual(['.coffee.md', '.md', '.md']);
});
