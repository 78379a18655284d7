import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
let data: string;
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'agentplatform-start-'));
});
afterAll(() => rm(data, { recursive: true, force: true }));

interface Ended {
  status: number | null;
  text: string;
}

/** `npm start` on a port and data of its own; `interruptAt` sends SIGINT once that text was written. */
function npmStart(args: string[], interruptAt?: string): Promise<Ended> {
  const child = spawn('npm', ['start', '--silent', '--', '--port', '0', '--data', data, ...args], { cwd: root });
  let text = '';
  let interrupted = false;
  const see = (chunk: unknown): void => {
    text += String(chunk);
    if (interrupted || interruptAt === undefined || !text.includes(interruptAt)) return;
    interrupted = true;
    child.kill('SIGINT');
  };
  child.stdout.on('data', see);
  child.stderr.on('data', see);
  return new Promise((done) => child.on('close', (status) => done({ status, text })));
}

const needsRoot = process.getuid?.() === 0 ? false : 'needs root, to make sandboxes';

describe('npm start', () => {
  it('counts 1 and 2 in one session and 1 in another, and ends well', { timeout: 300_000 }, async (context) => {
    if (needsRoot) return context.skip(needsRoot);
    const { status, text } = await npmStart(['--once']);
    expect(status, text).toBe(0);
    expect([...text.matchAll(/This is call (\d) of this session/g)].map((match) => match[1])).toEqual(['1', '2', '1']);
    expect(text).toContain('What to do next');
  });

  it('serves until Ctrl-C, and the second time sooner', { timeout: 300_000 }, async (context) => {
    if (needsRoot) return context.skip(needsRoot);
    const { status, text } = await npmStart([], 'until Ctrl-C');
    expect(status, text).toBe(0);
  });
});
