import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sourceProgram } from './testing/source-program.ts';
import { Unowned } from './testing/unowned.ts';

const SOURCE = import.meta.dirname;
const ROOT = resolve(SOURCE, '../../..');
/**
 * The server, what starts it again, the CLI, whose `dev` is a server of its own, the SDK, which is an agent's server, handset with its server and its proxy, and what
 * runs in the sandboxes of functions, browsers and code interpreters.
 */
const files = globSync(
  [
    'packages/{platform,cli,sdk,handset,policy-engine}/src/**/*.ts',
    'packages/handset/tools/**/*.{ts,mjs}',
    'images/**/*.mjs',
    'scripts/{platform,supervise}.mjs',
  ],
  { cwd: ROOT },
).filter((path) => !/[.](test|e2e)[.]|testing\//.test(path));

/** What no text here says is declared there. */
const DECLARED = `
  import type { Readable } from 'node:stream';
  declare const source: Readable;
  declare const end: () => void;
  declare const clock: { after(ms: number, run: () => void): () => void };
  declare const timers: { after(ms: number, run: () => void): void };
  `;

const UNOWNED: [what: string, source: string][] = [
  [
    'a stream that is piped only',
    `import { PassThrough } from 'node:stream'; const stage = new PassThrough(); source.pipe(stage);`,
  ],
  [
    'a stream of a class of ours',
    `import { HashGate } from './kernel/auth/hash-gate.ts'; source.pipe(new HashGate('', 1));`,
  ],
  ['a stream that is dropped', `import { createGunzip } from 'node:zlib'; source.pipe(createGunzip());`],
  [
    'a socket that is written to only',
    `import { connect } from 'node:net'; const socket = connect(1); socket.on('close', end); socket.write('x');`,
  ],
  ['one that is made by another name', `import { connect as dial } from 'node:net'; dial(1).on('close', end);`],
  ['one that is made by the name of its module', `import * as net from 'node:net'; net.connect(1).end('x');`],
  [
    'one that is made by its class',
    `import { Socket } from 'node:net'; const socket = new Socket(); socket.connect(1);`,
  ],
  [
    'one whose maker has got another name',
    `import net from 'node:net'; const dial = net.createConnection; dial(1).end();`,
  ],
  ['a secure socket', `import tls from 'node:tls'; tls.connect({ port: 1 }).end();`],
  ['a request', `import http from 'node:http'; http.request('http://x').end();`],
  ['a request over TLS', `import { get } from 'node:https'; get('https://x', end);`],
  [
    'a connection of HTTP/2',
    `import { connect } from 'node:http2'; const session = connect('http://x'); session.on('close', end);`,
  ],
  ['a server', `import { createServer } from 'node:net'; createServer().listen(0);`],
  [
    'a child of which only the end is heard',
    `import { spawn } from 'node:child_process'; const child = spawn('x'); child.once('exit', end);`,
  ],
  ['a child that is run and forgotten', `import { execFile } from 'node:child_process'; execFile('x', ['y']);`],
  ['a child of a shell', `import { exec } from 'node:child_process'; exec('x');`],
  ['a child with another name of its module', `import * as processes from 'node:child_process'; processes.fork('x');`],
  [
    'a worker',
    `import { Worker } from 'node:worker_threads'; const worker = new Worker('x'); worker.once('exit', end);`,
  ],
  ['a watcher', `import { watch } from 'node:fs'; watch('/x', end);`],
  [
    'a watcher by the name of its module',
    `import fs from 'node:fs'; const watcher = fs.watch('/x'); watcher.on('change', end);`,
  ],
  ['a file', `import { createWriteStream } from 'node:fs'; createWriteStream('/x').end('y');`],
  ['a socket of datagrams', `import { createSocket } from 'node:dgram'; createSocket('udp4').bind(1);`],
  ['a pool of the database', `import pg from 'pg'; const pool = new pg.Pool(); await pool.query('SELECT 1');`],
  [
    'a pool of the database by its own name',
    `import { Pool } from 'pg'; const pool = new Pool(); await pool.query('SELECT 1');`,
  ],
  [
    'lines of a stream, which tell its errors',
    `import { createInterface } from 'node:readline'; createInterface({ input: source }).on('line', end);`,
  ],
  ['a WebSocket', `import { WebSocket } from 'ws'; const socket = new WebSocket('ws://x'); socket.on('open', end);`],
  [
    'an entry of an archive',
    `import { pack } from 'tar-stream'; const tar = pack(); tar.on('error', end); tar.entry({ name: 'x' }, 'y');`,
  ],
  ['a timer that is dropped', `setTimeout(() => end(), 5).unref();`],
  ['a timer that is set aside', `void setTimeout(end, 5);`],
  ['one that is set aside and does not keep the process', `void setTimeout(end, 5).unref();`],
  ['a timer by another name', `import { setInterval as again } from 'node:timers'; again(end, 5);`],
  ['a timer of the clock that is dropped', `clock.after(5, end);`],
  ['a timer of the clock that is set aside', `void clock.after(5, end);`],
];

const OWNED: [what: string, source: string][] = [
  [
    'a stream with a listener',
    `import { PassThrough } from 'node:stream'; const stage = new PassThrough(); stage.on('error', end);`,
  ],
  [
    'one that hears at once',
    `import { createReadStream } from 'node:fs'; createReadStream('/x').once('error', end).pipe(process.stdout);`,
  ],
  [
    'one in a pipeline',
    `import { pipeline } from 'node:stream/promises'; import { createGunzip } from 'node:zlib'; await pipeline(source, createGunzip(), process.stdout);`,
  ],
  [
    'one that a pipeline takes by its name',
    `import { pipeline } from 'node:stream/promises'; import { extract } from 'tar-stream'; const untar = extract(); await pipeline(source, untar);`,
  ],
  [
    'one that is read to its end',
    `import { createReadStream } from 'node:fs'; for await (const part of createReadStream('/x')) process.stdout.write(part);`,
  ],
  [
    'one that its caller gets',
    `import { createReadStream } from 'node:fs'; export function open() { return createReadStream('/x'); }`,
  ],
  [
    'lines that are read to their end',
    `import { createInterface } from 'node:readline'; for await (const line of createInterface({ input: source })) end();`,
  ],
  ['what hashes', `import { createHash } from 'node:crypto'; const hash = createHash('sha256'); hash.update('x');`],
  [
    'a timer that can be called off',
    `export const timer = setTimeout(end, 5); export const cancel = clock.after(5, end);`,
  ],
  ['a timer of an owner', `timers.after(5, end);`],
  [
    'a child whose start may fail',
    `import { spawn } from 'node:child_process'; const child = spawn('x'); child.once('error', end);`,
  ],
  ['a child that tells its end to a function', `import { execFile } from 'node:child_process'; execFile('x', end);`],
];

// One program for all of it: that takes seconds.
const texts = [...UNOWNED, ...OWNED].map(([, source], at): [string, string] => [
  join(SOURCE, `owned-or-not-${at}.ts`),
  `${DECLARED}${source}`,
]);
const SUPERVISOR = join(ROOT, 'scripts/supervise.mjs');
const CARELESS_SUPERVISOR = join(ROOT, 'scripts/careless-supervise.mjs');
const careless = readFileSync(SUPERVISOR, 'utf8').replace(/child\.on\('error'.*/, '');
const unowned = new Unowned(
  sourceProgram(
    ROOT,
    files.map((path) => join(ROOT, path)),
    new Map([...texts, [CARELESS_SUPERVISOR, careless]]),
  ),
);
const inText = (at: number): string[] => unowned.in(texts[at]?.[0] ?? '');

describe('what finds streams without an owner', () => {
  it.each(UNOWNED.map(([what], at): [string, number] => [what, at]))('finds %s', (_what, at) => {
    expect(inText(at)).toHaveLength(1);
  });

  it('finds a supervisor that does not hear whether its server could start', () => {
    expect(unowned.in(SUPERVISOR)).toEqual([]);
    expect(unowned.in(CARELESS_SUPERVISOR)).toEqual([expect.stringMatching(/: spawn$/)]);
  });

  it.each(OWNED.map(([what], at): [string, number] => [what, at]))('leaves %s alone', (_what, at) => {
    expect(inText(UNOWNED.length + at)).toEqual([]);
  });
});

it('no stream, socket, server, child, worker, watcher, pool or timer of the server, its supervisor, the CLI, the SDK, handset and what runs in sandboxes is without an owner', () => {
  expect(files).toEqual(
    expect.arrayContaining([
      ...['scripts/supervise.mjs', 'packages/cli/src/dev/local-agent.ts', 'packages/sdk/src/app.ts'],
      ...['packages/handset/src/proxy/egress.ts', 'images/functions/host.mjs', 'images/browser/host/relay.mjs'],
      'images/code-interpreter/host/node-kernel.mjs',
    ]),
  );
  const found = files.flatMap((path) => unowned.in(join(ROOT, path)).map((one) => `${path}:${one}`));
  expect(found).toEqual([]);
});
