import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { ProvidedSandbox } from './provided-sandbox.ts';
import type { ExecHandle, SandboxExit } from './sandbox.ts';

/** A command that ends when it is killed, and not before. */
class Command implements ExecHandle {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly #end = Promise.withResolvers<number>();
  readonly exited = this.#end.promise;

  resize(): void {}

  kill(): void {
    this.#end.resolve(137);
  }
}

/** A sandbox whose commands start when `started` resolves. */
function sandboxWith(started: Promise<ExecHandle>, ended: Promise<SandboxExit> = new Promise(() => undefined)) {
  return new ProvidedSandbox(
    { id: 'one', labels: {}, isolation: 'none' },
    {
      ended,
      address: (port) => ({ host: '127.0.0.1', port }),
      exec: () => started,
      readUsage: async () => ({ cpuSeconds: 0, memoryHighWaterBytes: 0 }),
      endOfLog: async () => [],
      async *logs() {},
      terminate: async () => false,
      kill: async () => undefined,
      remove: async () => undefined,
    },
  );
}

it('a command that is only being started as its server leaves is ended with the others, and none is started after it', async () => {
  const { promise, resolve } = Promise.withResolvers<ExecHandle>();
  const sandbox = sandboxWith(promise);
  const starting = sandbox.exec(['sleep']);
  const left = sandbox.endCommands();
  const command = new Command();
  resolve(command);
  await left;
  expect(await command.exited).toBe(137);
  expect(await starting).toBe(command);
  await expect(sandbox.exec(['sleep'])).rejects.toMatchObject({ reason: 'failed' });
});

it('a command that is only being started as its sandbox ends is ended', async () => {
  const started = Promise.withResolvers<ExecHandle>();
  const ended = Promise.withResolvers<SandboxExit>();
  const sandbox = sandboxWith(started.promise, ended.promise);
  const starting = sandbox.exec(['sleep']);
  ended.resolve({ exitCode: 0, outOfMemory: false });
  await sandbox.exited;
  started.resolve(new Command());
  expect(await (await starting).exited).toBe(137);
});

it('a command that cannot be started keeps no server from leaving', async () => {
  const sandbox = sandboxWith(Promise.reject(new Error('no such sandbox')));
  await expect(sandbox.exec(['sleep'])).rejects.toThrow('no such sandbox');
  await sandbox.endCommands();
});
