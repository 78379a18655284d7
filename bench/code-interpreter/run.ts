import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { clientsOf } from '../../tests/support/clients.ts';
import { type CodeSession, startCodeSession } from '../../tests/support/code-session.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { median, rounded } from '../support/statistics.ts';

const execute = promisify(execFile);
const MIB = 2 ** 20;
const PART = 4 * MIB;

/**
 * `npm run bench -- code-interpreter [--quick] [--sessions N]`: a warm `1+1` end to end beside a bare ipykernel, the first result of a
 * pooled session beside a cold kernel start, 100 MB in and out in pieces, and many sessions live at once.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const live = Number(args[args.indexOf('--sessions') + 1]) || (quick ? 5 : 50);
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  const clients = clientsOf(platform);
  try {
    const session = await startCodeSession(clients);
    const rounds = quick ? 50 : 500;
    await warm(session, 20);
    const ours = median(await warm(session, rounds));
    const bare = await bareKernel(rounds);
    const theirs = median(bare.warm);
    say(`warm executeCode("1+1") p50  ${ms(ours)}   bare ipykernel ${ms(theirs)}   ratio ${rounded(ours / theirs, 2)}`);

    const firsts: number[] = [];
    for (let i = 0; i < (quick ? 3 : 15); i++) {
      // Until the next one is kept ready.
      await sleep(quick ? 4000 : 8000);
      const began = performance.now();
      const pooled = await startCodeSession(clients);
      await pooled.python('1+1');
      firsts.push(performance.now() - began);
      await pooled.stop();
    }
    const first = median(firsts);
    say(
      `pooled session, first result p50 ${ms(first)}   cold kernel start ${ms(bare.coldStart)}   ratio ${rounded(first / bare.coldStart, 3)}`,
    );

    const { write, read } = await transfer(session, 100 * MIB);
    say(
      `100 MB in pieces of 4 MB: written at ${rounded(write, 1)} MB/s, read at ${rounded(read, 1)} MB/s; server holds ${await residentMb(platform)} MB`,
    );

    const many = await Promise.all(Array.from({ length: live }, () => startCodeSession(clients)));
    const answers = await Promise.all(many.map((one) => one.python('1+1')));
    say(`${answers.filter((seen) => seen.text === '2').length} of ${live} sessions live at once answer`);
  } finally {
    clients.close();
    await platform.dispose();
  }
}

async function warm(session: CodeSession, rounds: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const began = performance.now();
    await session.python('1+1');
    times.push(performance.now() - began);
  }
  return times;
}

/** MB per second each way. */
async function transfer(session: CodeSession, bytes: number): Promise<{ write: number; read: number }> {
  const blob = randomBytes(PART);
  const paths = Array.from({ length: bytes / PART }, (_, i) => `part-${i}.bin`);
  const began = performance.now();
  for (const path of paths) await session.call('writeFiles', { content: [{ path, blob }] });
  const written = performance.now();
  for (const path of paths) await session.call('readFiles', { paths: [path] });
  const seconds = (ms: number): number => ms / 1000;
  const size = bytes / MIB;
  return { write: size / seconds(written - began), read: size / seconds(performance.now() - written) };
}

/** The same packages that the session's image holds, on this machine. */
async function bareKernel(rounds: number): Promise<{ coldStart: number; warm: number[] }> {
  const cache = resolve(import.meta.dirname, '../../.cache/platform/code-interpreter');
  const packages = (await readdir(cache)).find((name) => /^python-.*-slim-/.test(name));
  if (packages === undefined) throw new Error('The packages of the image are not in the cache.');
  const script = join(import.meta.dirname, 'bare_kernel.py');
  const env = { ...process.env, PYTHONPATH: join(cache, packages) };
  const { stdout } = await execute('python3', [script, String(rounds)], { env, timeout: 300_000 });
  return JSON.parse(stdout);
}

async function residentMb(platform: TestPlatform): Promise<number> {
  const { stdout } = await execute('ps', ['-o', 'rss=', '-p', String(platform.pid)]);
  return Math.round(Number(stdout) / 1024);
}

const ms = (value: number): string => `${rounded(value, 1)} ms`;
