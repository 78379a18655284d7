import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NetworkPolicy } from '../../kernel/sandbox/index.ts';
import { egressArn, egressProblem, endpointsOf, openEgress } from './egress.ts';

const closed: NetworkPolicy = { egress: 'none', allowCidrs: [], hostPorts: [] };
const restricted: NetworkPolicy = { ...closed, egress: 'restricted' };

const open = (list: string, policy = restricted, names: Record<string, string[]> = {}) =>
  openEgress(policy, endpointsOf(list), {
    resolve: async (host) => {
      const found = names[host];
      if (!found) throw new Error('ENOTFOUND');
      return found.map((address) => ({ address }));
    },
    ownPorts: () => [4100, 40_001],
  });

describe('a list of services that an agent may reach', () => {
  it('names hosts with ports, and the loopback interface of the host by any of its names', () => {
    expect(endpointsOf('Model.LAN.:8000, 10.0.0.7:1')).toEqual([
      { host: 'model.lan', port: 8000 },
      { host: '10.0.0.7', port: 1 },
    ]);
    for (const name of ['localhost', '127.0.0.1', 'host.docker.internal', 'platform.internal'])
      expect(endpointsOf(`${name}:11434`)).toEqual([{ host: 'localhost', port: 11_434 }]);
    expect(egressArn('111122223333', { host: 'model.lan', port: 80 })).toBe(
      'arn:aws:agentplatform::111122223333:egress/model.lan:80',
    );
  });

  it.each([
    ...['', 'localhost', ':80', 'localhost:', 'a:0', 'a:65536', 'a:080', 'a:1e3', 'a b:80', 'http://a:80', 'a:80/x'],
    ...[
      '[::1]:80',
      '::1:80',
      '127.1:80',
      '0x7f.1:80',
      '2130706433:80',
      '010.0.0.1:80',
      '10.0.0.0/8:80',
      '*:80',
      'a*:80',
    ],
    ...['-a:80', 'a..b:80', 'a:80,', 'a:80;b:80', 'é:80', 'a\n:80', `${'a'.repeat(64)}:80`],
    Array.from({ length: 17 }, (_, i) => `a:${i + 1}`).join(),
  ])('is nothing else: %j', (list) => {
    expect(egressProblem(list)).toEqual(expect.any(String));
  });

  it('whatever it is gives names and ports that a file of hosts and a rule can hold', () => {
    const part = fc.oneof(fc.string(), fc.domain(), fc.ipV4(), fc.constantFrom('localhost', '127.1', 'a\n1.2.3.4 b'));
    fc.assert(
      fc.property(fc.array(fc.tuple(part, fc.oneof(fc.string(), fc.nat(70_000).map(String)))), (parts) => {
        for (const { host, port } of endpointsOf(parts.map((pair) => pair.join(':')).join(','))) {
          expect(host).toMatch(/^[a-z0-9._-]+$/);
          expect(Number.isInteger(port) && port > 0 && port < 65_536).toBe(true);
        }
      }),
    );
  });
});

describe('what is opened for a sandbox', () => {
  it('is exactly the service, by the addresses that its name has when the sandbox is made', async () => {
    const names = { 'model.lan': ['192.168.1.20', 'fd00::1', '192.168.1.20'] };
    expect(await open('localhost:11434,model.lan:8000,10.0.0.7:9', closed, names)).toEqual({
      ...closed,
      hostPorts: [11_434],
      endpoints: [
        { host: 'model.lan', addresses: ['192.168.1.20'], port: 8000 },
        { host: '10.0.0.7', addresses: ['10.0.0.7'], port: 9 },
      ],
    });
    expect(await open('')).toEqual({ ...restricted, endpoints: [] });
  });

  it('is nothing of the internet where that is open, so that its names may go on to change', async () => {
    const names = { 'api.example.com': ['1.2.3.4'], 'split.example.com': ['1.2.3.4', '10.0.0.1'] };
    const both = 'api.example.com:443,split.example.com:443';
    const hosts = ({ endpoints = [] }: NetworkPolicy): string[] => endpoints.map(({ host }) => host);
    expect(hosts(await open(both, restricted, names))).toEqual(['split.example.com']);
    expect(hosts(await open(both, closed, names))).toEqual(['api.example.com', 'split.example.com']);
  });

  it.each([
    ['rebind.test:80', ['127.0.0.1']],
    ['rebind.test:80', ['169.254.169.254']],
    ['rebind.test:80', ['0.0.0.0', '::1', '224.0.0.1']],
    ['unknown.test:80', undefined],
    ['169.254.169.254:80', undefined],
    ['0.0.0.0:11434', undefined],
    ['127.0.0.2:80', undefined],
  ])('is never loopback by another name, nor link-local, nor unknown: %s at %j', async (list, addresses) => {
    const names: Record<string, string[]> = addresses ? { 'rebind.test': addresses } : {};
    await expect(open(list, restricted, names)).rejects.toMatchObject({ name: 'StartFailure' });
  });

  it("is never one of the platform's own ports", async () => {
    for (const port of [4100, 40_001])
      await expect(open(`localhost:${port}`)).rejects.toMatchObject({
        message: expect.stringContaining('belongs to the platform'),
      });
    expect((await open('localhost:4102')).hostPorts).toEqual([4102]);
  });
});
