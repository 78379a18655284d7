import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Canaries } from '../support/canaries.ts';

/** A search that finds nothing says something only if it finds what is there. */
const canaries = new Canaries();
const secret = canaries.plant('a secret');
canaries.plant('another secret');

it('a canary is found in a text in every form, wherever it begins', () => {
  expect(canaries.inText('nothing of theirs')).toEqual([]);
  expect(canaries.inText(`{"key":"${secret}"}`)).toEqual(['a secret']);
  expect(canaries.inText(Buffer.from(`\\x${secret}`).toString('hex'))).toEqual(['a secret']);
  for (const before of ['', 'a', 'ab'])
    for (const encoding of ['base64', 'base64url'] as const)
      expect(canaries.inText(Buffer.from(`${before}${secret}!`).toString(encoding)), before).toEqual(['a secret']);
});

it('a key is found by a piece of it, however it is written', () => {
  const pem = canaries.plantKey('a key', 'pem');
  const der = canaries.plantKey('another key', 'der');
  expect(canaries.inText(pem)).toEqual(['a key']);
  expect(canaries.inText(JSON.stringify({ pem }))).toEqual(['a key']);
  expect(canaries.inText(`wallet-auth:${der}`)).toEqual(['another key']);
});

it('a canary is found in a file at any depth, amid bytes of any kind', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'canaries-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = join(dir, 'a', 'b: c', 'heap');
  await mkdir(join(dir, 'a', 'b: c'), { recursive: true });
  await writeFile(file, 'nothing');
  expect(await canaries.inFiles([dir])).toEqual([]);
  await writeFile(file, Buffer.concat([Buffer.from([0, 255, 10]), Buffer.from(secret), Buffer.from([0])]));
  expect(await canaries.inFiles([dir])).toEqual([{ field: 'a secret', where: file }]);
});

it('a canary is found in the command line and in the environment of any process, unless it is excused there', async () => {
  const start = async (args: string[], env: Record<string, string>) => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()', ...args], { env });
    onTestFinished(() => void child.kill());
    await once(child, 'spawn');
    return String(child.pid);
  };
  const where = await start([secret], {});
  await expect.poll(() => canaries.inProcesses('cmdline')).toEqual([{ field: 'a secret', where }]);
  expect(await canaries.inProcesses('environ')).toEqual([]);
  const other = await start([], { A_SECRET: secret });
  await expect.poll(() => canaries.inProcesses('environ')).toEqual([{ field: 'a secret', where: other }]);
  expect(await canaries.inProcesses('environ', (field, text) => field === 'a secret' && text.includes('A_S'))).toEqual(
    [],
  );
});
