import { spawn } from 'node:child_process';
import { glob, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLATFORM_CACHE } from '../../scripts/test/fetched-once.ts';

const root = resolve(import.meta.dirname, '../..');
let data: string;
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'agentplatform-start-'));
});
afterAll(() => rm(data, { recursive: true, force: true }));

interface Ended {
  status: number | null;
  stdout: string;
  /** All that it wrote, in the order in which it came. */
  text: string;
}

/** `npm` with these words, on a port of its own; `interruptAt` sends SIGINT once that text was written. */
function npm(words: string[], { args, interruptAt }: { args: string[]; interruptAt?: string }): Promise<Ended> {
  // What is fetched in the background is no part of this.
  const quiet = ['--code-interpreter-prepare', 'off', '--embeddings-fetch', 'off'];
  const child = spawn('npm', [...words, '--', '--port', '0', ...quiet, ...args], { cwd: root });
  const all = { stdout: '', text: '' };
  let interrupted = false;
  const see = (chunk: unknown): void => {
    all.text += String(chunk);
    if (interrupted || interruptAt === undefined || !all.text.includes(interruptAt)) return;
    interrupted = true;
    child.kill('SIGINT');
  };
  child.stdout.on('data', (chunk) => {
    all.stdout += String(chunk);
    see(chunk);
  });
  child.stderr.on('data', see);
  return new Promise((done) => child.on('close', (status) => done({ status, ...all })));
}

/**
 * What a start makes once and later ones find: the database, the prepared one that it is a copy of, the agent's Node, its image, and its
 * code as it was uploaded. Each by its inode, for what is made anew has another.
 */
async function made(): Promise<string[]> {
  const once = ['db', 'cache/*/*', 'images/{bases,layers,rootfs}/*', 'images/blobs/sha256/*', 'objects/*/objects/*/*'];
  const found: string[] = [];
  for await (const path of glob(once, { cwd: data })) found.push(`${path} ${(await stat(join(data, path))).ino}`);
  return found.sort();
}

const needsRoot = process.getuid?.() === 0 ? false : 'needs root, to make sandboxes';

describe('npm start', () => {
  it('counts 1 and 2 in one session and 1 in another, and ends well', { timeout: 300_000 }, async (context) => {
    if (needsRoot) return context.skip(needsRoot);
    const { status, text } = await npm(['start', '--silent'], {
      args: ['--data', data, '--cache', join(data, 'cache'), '--once'],
    });
    expect(status, text).toBe(0);
    expect([...text.matchAll(/This is call (\d) of this session/g)].map((match) => match[1])).toEqual(['1', '2', '1']);
    expect(text).toContain('What to do next');
  });

  it('serves until Ctrl-C, and the second time makes nothing anew', { timeout: 300_000 }, async (context) => {
    if (needsRoot) return context.skip(needsRoot);
    const before = await made();
    for (const part of ['db ', 'cache/database/', 'cache/programs/', 'images/layers/', 'images/rootfs/', 'objects/'])
      expect(before).toContainEqual(expect.stringMatching(`^${part}`));
    const args = ['--data', data, '--cache', join(data, 'cache')];
    const { status, text } = await npm(['start', '--silent'], { args, interruptAt: 'until Ctrl-C' });
    expect(status, text).toBe(0);
    expect(await made()).toEqual(before);
    expect(text).not.toMatch(/Installing|apt-get/);
  });
});

describe('npm run platform', () => {
  it('prints one line of JSON and nothing else, where npm is told to be silent', async () => {
    const args = ['--data', join(data, 'json'), '--cache', PLATFORM_CACHE, '--json', '--sandbox', 'process'];
    const { status, stdout, text } = await npm(['run', '--silent', 'platform'], { args, interruptAt: '{"ready":true' });
    expect(stdout, text).toMatch(/^\{"ready":true,[^\n]+\}\n$/);
    expect(status, text).toBe(0);
  });
});
