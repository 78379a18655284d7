import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

let dir: string;
let supervisor: ChildProcess | undefined;
let said: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'supervise-'));
});
afterEach(async () => {
  supervisor?.kill('SIGKILL');
  await rm(dir, { recursive: true, force: true });
});

/** A server that notes its life and then does what the test wants, supervised in a process of its own. */
async function run(
  server: string,
  { pausesMs = [0, 10, 20], deaf = false, env = {} } = {},
): Promise<[number | null, string | null]> {
  const script = join(dir, 'server.mjs');
  await writeFile(
    script,
    `import { appendFileSync, readFileSync } from 'node:fs';
     const life = JSON.parse(process.env.SUPERVISED_LIFE ?? '{"restarts":0}');
     const serve = () => new Promise((done) => process.send({ serving: { port: 4100 } }, done));
     const note = (text) => appendFileSync(${JSON.stringify(join(dir, 'notes'))}, text + '\\n');
     process.on('disconnect', () => process.exit(0));
     note(JSON.stringify(life));
     ${server}`,
  );
  const options = JSON.stringify({ pausesMs, goodMs: 60_000 });
  const main = join(dir, 'main.mjs');
  await writeFile(
    main,
    `import { supervise } from ${JSON.stringify(join(import.meta.dirname, 'supervise.mjs'))};
     supervise(${JSON.stringify(script)}, ['an-argument'], ${options});`,
  );
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  supervisor = child;
  said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  if (deaf) child.stderr.destroy();
  const [status, signal] = await once(child, 'close');
  return [status, signal];
}

const notes = async (): Promise<string[]> =>
  (await readFile(join(dir, 'notes'), 'utf8').catch(() => '')).trim().split('\n');

it('starts a server that ends unasked again, with a growing pause, and tells it how often and where it served', async () => {
  const status = await run(`
    await serve();
    if (life.restarts === 4) process.exit(0);
    process.kill(process.pid, life.restarts === 0 ? 'SIGKILL' : 'SIGABRT');`);
  expect(status).toEqual([0, null]);
  const lives = (await notes()).map((line) => JSON.parse(line));
  const ports = { port: 4100 };
  expect(lives).toEqual([
    { restarts: 0 },
    { restarts: 1, lastEnd: 'SIGKILL', ports },
    { restarts: 2, lastEnd: 'SIGABRT', ports },
    { restarts: 3, lastEnd: 'SIGABRT', ports },
    { restarts: 4, lastEnd: 'SIGABRT', ports },
  ]);
  expect(said.match(/again .*/g)).toEqual([
    'again at once: restart 1',
    'again in 0.01 s: restart 2',
    'again in 0.02 s: restart 3',
    'again in 0.02 s: restart 4',
  ]);
});

it('starts again after a start that failed, once the server has served', async () => {
  expect(await run(`if (life.restarts === 0) await serve(); process.exit(life.restarts === 2 ? 0 : 1);`)).toEqual([
    0,
    null,
  ]);
  expect(await notes()).toHaveLength(3);
});

it.each([
  ['a first start that fails', 'process.exit(1)', [1, null]],
  ['a wrong configuration', 'process.exit(2)', [2, null]],
  ['a configuration that has become wrong', 'await serve(); process.exit(2)', [2, null]],
  ['an orderly end', 'await serve(); process.exit(0)', [0, null]],
  [
    'a first start that is killed',
    `process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)`,
    [null, 'SIGTERM'],
  ],
])('ends as the server does after %s', async (_name, server, status) => {
  expect(await run(server)).toEqual(status);
  expect(await notes()).toHaveLength(1);
});

it.each(['SIGTERM', 'SIGINT'] as const)('passes %s on and ends with what the server makes of it', async (signal) => {
  const ended = run(`process.on('${signal}', () => { note('asked'); process.exit(7); }); await serve(); note('serves');
    setInterval(() => {}, 1000);`);
  await expect.poll(notes, { timeout: 20_000 }).toContain('serves');
  supervisor?.kill(signal);
  expect(await ended).toEqual([7, null]);
  expect(await notes()).toEqual(['{"restarts":0}', 'serves', 'asked']);
});

it('ends at once when it is asked to while it waits to start again', async () => {
  const ended = run(`await serve(); process.kill(process.pid, 'SIGKILL')`, { pausesMs: [600_000] });
  await expect.poll(() => said, { timeout: 20_000 }).toContain('again in 600 s');
  supervisor?.kill('SIGTERM');
  expect(await ended).toEqual([null, 'SIGTERM']);
});

it('that is killed takes the server along', async () => {
  const ended = run(
    `process.on('exit', () => note('ended')); await serve(); note('serves'); setInterval(() => {}, 1000);`,
  );
  await expect.poll(notes, { timeout: 20_000 }).toContain('serves');
  supervisor?.kill('SIGKILL');
  await ended;
  await expect.poll(notes, { timeout: 20_000 }).toContain('ended');
});

it('starts the server again when nobody reads what it says', async () => {
  await run("await serve(); if (life.restarts === 2) process.exit(0); process.kill(process.pid, 'SIGKILL');", {
    deaf: true,
  });
  expect(await notes()).toHaveLength(3);
});

it.each([
  ['', {}, '1 131072'],
  [', unless the environment says otherwise', { MALLOC_ARENA_MAX: '4', MALLOC_TRIM_THRESHOLD_: '0' }, '4 0'],
])('starts a server that gives back what it freed%s', async (_name, env, said) => {
  await run("note([process.env.MALLOC_ARENA_MAX, process.env.MALLOC_TRIM_THRESHOLD_].join(' ')); process.exit(0);", {
    env,
  });
  expect(await notes()).toEqual(['{"restarts":0}', said]);
});
