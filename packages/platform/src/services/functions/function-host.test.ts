import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const HOST = join(import.meta.dirname, '../../../../../images/functions/host.mjs');

let folder: string;
let host: ChildProcess;
let port: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'function-host-'));
  await writeFile(join(folder, 'index.mjs'), 'export const handler = async (event) => event;');
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  ({ port } = free.address() as AddressInfo);
  await new Promise((closed) => free.close(closed));
  const env = { ...process.env, AGENTPLATFORM_PORT: String(port), _HANDLER: 'index.handler' };
  host = spawn(process.execPath, [HOST], { cwd: folder, env, stdio: 'ignore' });
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${port}/ping`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    .toBe(true);
});
afterEach(async () => {
  host.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** A request that is cut within its body, and reset. */
async function cut(): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  const head = ['POST /events HTTP/1.1', 'host: x', 'content-length: 70000', '', '{"half":'].join('\r\n');
  await new Promise((sent) => socket.write(head, sent));
  // Read as far as it goes: what was asked behind it is answered.
  expect((await fetch(`http://127.0.0.1:${port}/ping`)).ok).toBe(true);
  socket.resetAndDestroy();
}

it('an event that is cut within its body costs the sandbox nothing', async () => {
  for (let times = 0; times < 3; times += 1) await cut();
  const answer = await fetch(`http://127.0.0.1:${port}/events`, { method: 'POST', body: '{"text":"again"}' });
  expect(await answer.json()).toEqual({ text: 'again' });
  expect(host.exitCode).toBeNull();
});
