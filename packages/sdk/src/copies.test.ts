import os from 'node:os';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { AgentPlatformApp } from './app.ts';
import { onCopy, reseedIfCopied } from './copies.ts';

const own = os.hostname();
const machine = { name: own };
vi.spyOn(os, 'hostname').mockImplementation(() => machine.name);

const engines = Math.random;
const hook = vi.fn();
onCopy(hook);
afterEach(() => {
  Math.random = engines;
  hook.mockClear();
});
afterAll(() => {
  // Files share a process: it is itself again.
  machine.name = own;
  reseedIfCopied();
  Math.random = engines;
  vi.restoreAllMocks();
});

it('leaves a process alone that is no copy', () => {
  expect(reseedIfCopied()).toBe(false);
  expect(Math.random).toBe(engines);
  expect(hook).not.toHaveBeenCalled();
});

it('gives each copy a generator of its own, once', () => {
  const said = ['one', 'two', 'three'].map((name) => {
    machine.name = name;
    expect([reseedIfCopied(), reseedIfCopied()]).toEqual([true, false]);
    return Math.random();
  });
  expect(new Set(said).size).toBe(3);
  expect(hook).toHaveBeenCalledTimes(3);
  // What comes later is not made of the seed.
  const { random } = Math;
  expect(new Set(Array.from({ length: 1000 }, () => random())).size).toBe(1000);
});

it('is asked by the app before the first request', async () => {
  const app = new AgentPlatformApp(() => 'hello');
  const running = await app.run({ port: 0, host: '127.0.0.1' });
  const ping = () => fetch(`http://127.0.0.1:${running.port}/ping`);
  await ping();
  expect(hook).not.toHaveBeenCalled();
  machine.name = 'four';
  await ping();
  await ping();
  expect(hook).toHaveBeenCalledTimes(1);
  await running.close();
});
