import { describe, expect, it } from 'vitest';
import { handset } from './support/cli.ts';
import { smallProject } from './support/project.ts';

/** Run unit tests and say of each what became of it: `ok`, or its message. */
async function run(tests: string): Promise<Record<string, string | undefined>> {
  const { stdout } = await handset(smallProject({ 'app/a.test.js': tests }), ['test', '--json']);
  const lines = stdout.trim().split('\n');
  const events = lines.map(
    (line) => JSON.parse(line) as { event: string; name: string; ok: boolean; message?: string },
  );
  return Object.fromEntries(
    events.filter(({ event }) => event === 'test').map(({ name, ok, message }) => [name, ok ? 'ok' : message]),
  );
}

describe('handset test', () => {
  it('blames an error that is thrown later on its own test, at once', async () => {
    const results = await run(`
      var ended = [];
      afterEach(function () { ended.push(1); });
      test('late', function (done) { setTimeout(function () { throw new Error('too late'); }, 1); });
      test('after it', function () { assert.equal(ended.length, 0); });
      test('beside', function (done) {
        var button = document.createElement('button');
        button.onclick = function () { throw new Error('of a listener'); };
        button.click();
        done();
      });
      test('after that', function () { assert.equal(ended.length, 2); });
    `);
    expect(results).toEqual({ late: 'too late', 'after it': 'ok', beside: 'of a listener', 'after that': 'ok' });
  });

  it('prefers what was thrown past a test to what it says itself, and forgets it', async () => {
    const results = await run(`
      test('both', function () {
        var button = document.createElement('button');
        button.onclick = function () { throw new Error('first'); };
        button.click();
        assert.ok(false, 'second');
      });
      test('after it', function () {});
    `);
    expect(results).toEqual({ both: 'first', 'after it': 'ok' });
  });
});

describe('assert.deepEqual', () => {
  const equal: readonly string[] = [
    'NaN, NaN',
    '{ a: [1, { b: null }] }, { a: [1, { b: null }] }',
    'new Date(5), new Date(5)',
    'new Date(NaN), new Date(NaN)',
    '/a/g, /a/g',
    '[new Error("a")], [new Error("a")]',
    'Object("a"), new String("a")',
    'new Map([[1, { a: 1 }], [2, 2]]), new Map([[2, 2], [1, { a: 1 }]])',
    'new Set([1, 2]), new Set([2, 1])',
    'document.createElement("p"), document.createElement("p")',
  ];
  const different: readonly string[] = [
    'new Date(0), {}',
    '{}, new Date(0)',
    'new Date(0), new Date(1)',
    '{ at: new Date(0) }, { at: {} }',
    '/a/, /b/g',
    '[/a/], [/a/i]',
    'new Error("a"), new Error("b")',
    'new Error("a"), new TypeError("a")',
    'Object(1), Object(2)',
    'Object("1"), Object(1)',
    'NaN, 0',
    'NaN, "x"',
    '[], {}',
    'new Map([[1, 1]]), new Map([[1, 2]])',
    'new Set([1]), new Set([2])',
    'new Set([1]), new Map([[1, 1]])',
    'document.createElement("p"), document.createElement("b")',
    'null, {}',
    '{ a: undefined }, {}',
  ];

  it('looks at what is inside', async () => {
    const cases = [...equal, ...different].map(
      (pair) => `test('${pair}', function () { assert.deepEqual(${pair}); });`,
    );
    const results = await run(cases.join('\n'));
    const passed = Object.keys(results).filter((name) => results[name] === 'ok');
    expect(passed).toEqual(equal);
    expect(Object.keys(results)).toHaveLength(equal.length + different.length);
    expect(results['/a/, /b/g']).toBe('expected /b/g, got /a/');
  });
});
