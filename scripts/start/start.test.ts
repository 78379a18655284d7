import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const data = mkdtempSync(join(tmpdir(), 'agentplatform-start-'));
afterAll(() => rmSync(data, { recursive: true, force: true }));

/** Runs `npm start` without its bootstrap. */
function start(...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const script = join(import.meta.dirname, '..', 'start.ts');
  const child = spawn(process.execPath, [script, '--data', data, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve) => {
    const text = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => {
      text.stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      text.stderr += chunk;
    });
    child.on('close', (status) => resolve({ status, ...text }));
  });
}

it('says who has the port, and how to choose another', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { status, stderr } = await start('--port', `${port}`);
  server.close();
  expect(status).toBe(1);
  expect(stderr).toContain(`Port ${port} is taken by`);
  expect(stderr).toContain(`(process ${process.pid})`);
  expect(stderr).toContain(`--port ${port + 1}`);
});

it('says what is wrong with an option', async () => {
  expect(await start('--prot', '1')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('did you mean --port?'),
  });
});

it('explains itself', async () => {
  expect(await start('--help')).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/--once[\s\S]*--port <port>/),
  });
});
