import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

/** Calls that make something whose `error` event ends the process when nobody hears it. */
const MAKERS = new Set([
  ...['connect', 'createConnection', 'createServer', 'createSecureServer', 'request', 'spawn', 'fork', 'duplexPair'],
  ...['createReadStream', 'createWriteStream', 'createGunzip', 'createInflate', 'createBrotliDecompress'],
  ...['createZstdDecompress', 'extract', 'pack', 'Readable.from', 'PassThrough', 'Transform', 'Readable', 'Writable'],
  ...[
    'Duplex',
    'Socket',
    'Worker',
    'WebSocket',
    'WebSocketServer',
    'pg.Pool',
    'PgBoss',
    'HashGate',
    'AwsChunkedDecoder',
  ],
]);
/** Who takes what is handed to them whole, errors included. */
const TAKERS = new Set(['pipeline', 'finished', 'once', 'text', 'buffer', 'feed', 'send', 'verifyBody']);

/**
 * Streams, sockets, servers, children and workers in `source` of which nobody in sight hears `error`: neither a listener on the name that they are
 * given, nor a pipeline, a loop or a caller (`return`, `yield`, a member of what is handed on) that takes them. Goes by names: what is handed on is trusted, and so is a listener that
 * comes late. It finds what nobody has thought of.
 */
function unowned(source: string): string[] {
  const file = ts.createSourceFile('x.ts', source, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && MAKERS.has(node.expression.getText(file))) {
      // One of that name that is made here is another.
      const another = new RegExp(`\\b(?:const|function) ${node.expression.getText(file)}\\b`).test(source);
      if (!another && !isOwned(node, source)) {
        const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
        found.push(`${line + 1}: ${node.expression.getText(file)}`);
      }
    }
    if (ts.isExpressionStatement(node) && isTimer(node.expression)) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
      found.push(`${line + 1}: a timer`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** A timer that nobody can call off; those of `Timers` end with their owner. */
function isTimer(node: ts.Node): boolean {
  if (!ts.isCallExpression(node)) return false;
  const { expression: callee } = node;
  if (!ts.isPropertyAccessExpression(callee)) return /^set(Timeout|Interval)$/.test(callee.getText());
  if (/^(un)?ref$/.test(callee.name.text)) return isTimer(callee.expression);
  return callee.name.text === 'after' && !/[tT]imers$/.test(callee.expression.getText());
}

function isOwned(made: ts.Node, source: string): boolean {
  for (let node = made; node.parent; node = node.parent) {
    const { parent } = node;
    if (ts.isReturnStatement(parent) || ts.isYieldExpression(parent) || ts.isForOfStatement(parent)) return true;
    if (ts.isArrowFunction(parent) && parent.body === node) return true;
    if (ts.isAwaitExpression(parent) || ts.isPropertyAssignment(parent)) return true;
    if (ts.isCallExpression(parent)) {
      const callee = parent.expression;
      const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : callee.getText();
      if (node !== callee && (TAKERS.has(name) || (ts.isPropertyAccessExpression(callee) && name === 'write')))
        return true;
      if (node === callee && /^(on|once)$/.test(name) && /['"]error['"]/.test(parent.arguments[0]?.getText() ?? ''))
        return true;
    }
    const name =
      ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)
        ? parent.name.getText()
        : ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken
          ? parent.left.getText()
          : undefined;
    if (name !== undefined) return isHeard(name, source);
    if (ts.isStatement(parent)) return false;
  }
  return false;
}

function isHeard(name: string, source: string): boolean {
  const own = `(?:this\\.)?${name.replace(/^this\./, '').replace(/[.#$]/g, '\\$&')}`;
  const listens = `${own}\\s*(?:\\.\\w+\\([^;]*?\\)\\s*)*\\.(?:on|once)\\(\\s*['"]error['"]`;
  const taken = `\\b(?:${[...TAKERS].join('|')})\\([^;]*?${own}\\b`;
  const read = `(?:\\bof|yield\\*|return)\\s+${own}\\b`;
  return new RegExp(`${listens}|${taken}|${read}`, 's').test(source);
}

describe('what finds streams without an owner', () => {
  it.each([
    ['a stream that is piped only', `const stage = new PassThrough(); source.pipe(stage);`],
    ['a socket that is written to only', `const socket = connect(1); socket.on('close', end); socket.write('x');`],
    ['a child of which only the end is heard', `this.#child = spawn('x'); this.#child.once('exit', end);`],
    ['a stream that is dropped', `source.pipe(createGunzip());`],
    ['a timer that is dropped', `setTimeout(() => end(), 5).unref();`],
    ['a timer of the clock that is dropped', `this.#deps.clock.after(5, () => end());`],
  ])('finds %s', (_name, source) => expect(unowned(source)).toHaveLength(1));

  it.each([
    ['a stream with a listener', `const stage = new PassThrough(); stage.on('error', end);`],
    ['one that hears at once', `createReadStream(path).once('error', end).pipe(other);`],
    ['one in a pipeline', `await pipeline(createReadStream(path), createGunzip(), untar);`],
    ['one that a pipeline takes by its name', `const untar = extract(); await pipeline(source, untar);`],
    ['one that is read to its end', `for await (const part of createReadStream(path)) hash.update(part);`],
    ['one that its caller gets', `function open() { return createReadStream(path); }`],
    ['a timer that can be called off', `const timer = setTimeout(end, 5); this.#cancel = clock.after(5, end);`],
    ['a timer of an owner', `this.#timers.after(5, end);`],
    ['a child whose start may fail', `const child = spawn('x'); child.once('error', reject);`],
  ])('leaves %s alone', (_name, source) => expect(unowned(source)).toEqual([]));
});

it('no stream, socket, server, child, worker or timer of the server is without an owner', () => {
  const found = globSync('**/*.ts', { cwd: import.meta.dirname })
    .filter((path) => !/[.]test[.]ts$|testing\//.test(path))
    .flatMap((path) => unowned(readFileSync(join(import.meta.dirname, path), 'utf8')).map((one) => `${path}:${one}`));
  expect(found).toEqual([]);
});
