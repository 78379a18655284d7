import { expect, it } from 'vitest';
import { checkDaemon } from './probe-docker.ts';

const good = {
  OSType: 'linux',
  SecurityOptions: ['name=seccomp,profile=default'],
  MemoryLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
  Runtimes: { runc: {}, runsc: {} },
};

it('a daemon that can hold a sandbox to everything lacks nothing', () => {
  expect(checkDaemon(good, undefined)).toEqual([]);
  expect(checkDaemon(good, 'runsc')).toEqual([]);
});

it.each([
  [{ OSType: 'windows' }, 'Linux'],
  [{ SecurityOptions: ['name=seccomp,profile=default', 'name=rootless'] }, 'runs as root'],
  [{ SecurityOptions: [] }, 'seccomp'],
  [{ MemoryLimit: false }, 'memory'],
  [{ CpuCfsQuota: undefined }, 'processor'],
  [{ PidsLimit: 'yes' }, 'process'],
])('%j is named', (change, what) => {
  expect(checkDaemon({ ...good, ...change }, undefined)).toEqual([
    { what: expect.stringContaining(what), remedy: expect.any(String) },
  ]);
});

it('a runtime that the daemon does not offer is named with those it offers', () => {
  expect(checkDaemon(good, 'kata')[0]?.what).toBe('the runtime kata in Docker, which offers runc, runsc');
  expect(checkDaemon(undefined, undefined).length).toBeGreaterThan(3);
});
