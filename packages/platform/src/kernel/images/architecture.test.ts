import { arch } from 'node:os';
import { describe, expect, it } from 'vitest';
import { architectureError, choosePlatform, machinePlatform, suitability } from './architecture.ts';

const linux = (architecture: string, variant?: string) => ({
  os: 'linux',
  architecture,
  ...(variant ? { variant } : {}),
});
const v3 = new Set('cx16 popcnt ssse3 sse4_1 sse4_2 avx avx2 bmi1 bmi2 f16c fma movbe'.split(' '));

describe('the machine', () => {
  it.each([
    [{ arch: 'x64', endianness: 'LE' as const }, linux('amd64', 'v1')],
    [{ arch: 'x64', endianness: 'LE' as const, cpuFlags: v3 }, linux('amd64', 'v3')],
    [{ arch: 'arm64', endianness: 'LE' as const }, linux('arm64', 'v8')],
    [{ arch: 'arm', endianness: 'LE' as const, armVersion: 6 }, linux('arm', 'v6')],
    [{ arch: 'ppc64', endianness: 'LE' as const }, linux('ppc64le')],
    [{ arch: 'ppc64', endianness: 'BE' as const }, linux('ppc64')],
    [{ arch: 's390x', endianness: 'BE' as const }, linux('s390x')],
    [{ arch: 'ia32', endianness: 'LE' as const }, linux('386')],
    [{ arch: 'riscv64', endianness: 'LE' as const }, linux('riscv64')],
  ])('%j', (host, expected) => {
    expect(machinePlatform(host)).toEqual(expected);
  });

  it('knows this one', () => {
    const expected: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };
    expect(machinePlatform().architecture).toBe(expected[arch()] ?? machinePlatform().architecture);
  });
});

describe('what suits it', () => {
  it.each([
    [linux('amd64', 'v3'), linux('amd64'), true],
    [linux('amd64', 'v1'), linux('amd64', 'v3'), false],
    [linux('arm64', 'v8'), linux('arm64'), true],
    [linux('arm64', 'v8'), linux('arm64', 'v9'), false],
    [linux('arm', 'v7'), linux('arm', 'v6'), true],
    [linux('arm', 'v6'), linux('arm', 'v7'), false],
    [linux('arm64', 'v8'), linux('amd64'), false],
    [linux('amd64'), { os: 'windows', architecture: 'amd64' }, false],
    [linux('amd64', 'v1'), linux('amd64', 'weird'), false],
  ])('%j runs %j: %s', (machine, image, runs) => {
    expect(suitability(machine, image) !== undefined).toBe(runs);
  });

  it('takes the best that the machine can run', () => {
    const offers = ['v2', undefined, 'v3', 'v4'].map((variant) => ({
      platform: linux('amd64', variant),
      value: variant,
    }));
    expect(choosePlatform(linux('amd64', 'v3'), offers)).toBe('v3');
    expect(choosePlatform(linux('amd64', 'v1'), offers.slice(1))).toBe(undefined);
    expect(choosePlatform(linux('arm64', 'v8'), offers)).toBe(undefined);
  });

  it('the error names both sides and the remedy', () => {
    const error = architectureError('app:1', linux('amd64', 'v3'), [linux('arm64')]);
    expect(error.reason).toBe('architecture');
    expect(error.message).toBe(
      'app:1 is built for linux/arm64, but this machine runs linux/amd64. Build it for this machine, for example with "docker build --platform linux/amd64".',
    );
  });
});
