import { spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../packages/platform/src/kernel/processes/run-command.ts';
import {
  type NetworkPolicy,
  SANDBOX_ENDPOINT_ADDRESS,
  type Sandbox,
} from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import {
  at,
  host,
  hostPid,
  type OpenLab,
  ownAddresses,
  reach,
  reachAny,
  type SandboxLab,
  shell,
  speaker,
} from './sandbox-lab.ts';

/** Addresses of a network namespace that stands for the world outside; nothing here leaves the machine. */
const WORLD = { public: '1.2.3.4', metadata: '169.254.169.254', private: '172.30.99.9', shared: '100.100.100.200' };
const PORT = 8099;

const closed: NetworkPolicy = { egress: 'none', allowCidrs: [], hostPorts: [] };
const restricted: NetworkPolicy = { ...closed, egress: 'restricted' };

/** Attempts on addresses that a sandbox must not reach; every provider that isolates withstands them. */
export function networkAttacks(title: string, open: OpenLab, { ownStack = false } = {}): void {
  describe(title, () => {
    let lab: SandboxLab;
    let world: World;
    let resolver: Resolver;
    let endpoint: { port: number; close(): void };

    const withSandbox = async (
      network: NetworkPolicy,
      check: (sandbox: Sandbox) => Promise<void>,
      command?: string[],
    ): Promise<void> => {
      const sandbox = await lab.create({ network, ...(command ? { command } : {}) });
      try {
        await check(sandbox);
      } finally {
        await sandbox.stop();
      }
    };

    beforeAll(async () => {
      resolver = await openResolver();
      endpoint = await openSandboxEndpoint();
      lab = await open({
        nameserver: { address: '127.0.0.1', port: resolver.port },
        sandboxEndpoint: () => endpoint.port,
      });
      world = await openWorld(join(lab.dir, 'world'));
      // The control for every address of the world: from the host all of them answer.
      for (const address of Object.values(WORLD)) {
        await until(async () => (await host('busybox', 'nc', '-w', '2', address, String(PORT))).out === 'world\n');
      }
    });
    afterAll(async () => {
      await world?.close();
      await lab?.close();
      resolver?.socket.close();
      endpoint?.close();
    });

    it('the internet, but no private, shared or link-local address', async () => {
      await withSandbox(restricted, async (sandbox) => {
        const reached = await reachAny(sandbox, at(Object.values(WORLD), PORT));
        expect(reached).toEqual([`${WORLD.public} ${PORT} world`]);
      });
    });

    it('a private range once it is allowed, and only that', async () => {
      const allowed = withSandbox({ ...restricted, allowCidrs: ['172.30.99.0/24'] }, async (sandbox) => {
        expect(await reach(sandbox, WORLD.private, PORT)).toBe('world\n');
        expect(await reachAny(sandbox, [[WORLD.metadata, PORT]])).toEqual([]);
      });
      // It was the policy that kept the metadata address away, and nothing else.
      const other = withSandbox({ ...restricted, allowCidrs: [`${WORLD.metadata}/32`] }, async (sandbox) => {
        expect(await reach(sandbox, WORLD.metadata, PORT)).toBe('world\n');
        expect(await reachAny(sandbox, [[WORLD.private, PORT]])).toEqual([]);
      });
      await Promise.all([allowed, other]);
    });

    it('one service by address or name and port once it is allowed, and nothing beside it', async () => {
      const model = await speaker('model', '::');
      const beside = await speaker('beside', '::');
      try {
        const [own = ''] = ownAddresses();
        const there = { host: 'model.lan', addresses: [own], port: model.port };
        const away = { host: WORLD.private, addresses: [WORLD.private], port: PORT };
        const checks = [closed, restricted].map((policy) =>
          withSandbox({ ...policy, endpoints: [there, away] }, async (sandbox) => {
            expect(await reach(sandbox, 'model.lan', model.port)).toBe('model');
            expect(await reach(sandbox, own, model.port)).toBe('model');
            expect(await reach(sandbox, WORLD.private, PORT)).toBe('world\n');
            const gateway = (await shell(sandbox, 'ip route')).out.match(/default via (\S+)/)?.[1] ?? '';
            const others = at([gateway, 'platform.internal', 'host.docker.internal', '127.0.0.1'], model.port);
            const inside = at([WORLD.metadata, WORLD.shared], PORT);
            const ports = at([own, 'model.lan'], beside.port);
            expect(await reachAny(sandbox, [...others, ...inside, ...ports])).toEqual([]);
          }),
        );
        // It was the policy that kept the other port away.
        const open = withSandbox({ ...closed, allowCidrs: [`${own}/32`] }, async (sandbox) => {
          expect(await reachAny(sandbox, [[own, beside.port]])).toEqual([`${own} ${beside.port} beside`]);
        });
        const without = withSandbox(restricted, async (sandbox) => {
          expect(
            await reachAny(sandbox, [
              [own, model.port],
              [WORLD.private, PORT],
            ]),
          ).toEqual([]);
        });
        await Promise.all([...checks, open, without]);
        // What was open for a sandbox that is gone is not for the next, which may have its interface's name.
        await withSandbox(restricted, async (sandbox) => {
          expect(await reachAny(sandbox, [[own, model.port]])).toEqual([]);
        });
      } finally {
        model.close();
        beside.close();
      }
    });

    it('nothing with egress none, though the server still reaches it', async () => {
      const command = ['/bin/busybox', 'nc', '-ll', '-p', '8080', '-e', '/bin/echo', 'agent'];
      await withSandbox(
        closed,
        async (sandbox) => {
          const { host: ip, port } = sandbox.address(8080);
          await until(async () => (await host('busybox', 'nc', '-w', '2', ip, String(port))).out === 'agent\n');
          expect(await reach(sandbox, '127.0.0.1', 8080)).toBe('agent\n');
          expect(await reach(sandbox, ip, 8080)).toBe('agent\n');
          expect(await reachAny(sandbox, at(Object.values(WORLD), PORT))).toEqual([]);
          expect((await shell(sandbox, 'nslookup ok.test')).code).not.toBe(0);
        },
        command,
      );
    });

    it('no other sandbox, not even when the whole private range is allowed', async () => {
      const command = ['/bin/busybox', 'nc', '-ll', '-p', '8080', '-e', '/bin/echo', 'agent'];
      await withSandbox(
        restricted,
        async (target) => {
          const { host: ip } = target.address(8080);
          await until(async () => (await host('busybox', 'nc', '-w', '2', ip, '8080')).out === 'agent\n');
          const policies = [restricted, closed, { ...restricted, allowCidrs: ['10.0.0.0/8'] }];
          const attacks = policies.map((policy) =>
            withSandbox(policy, async (attacker) => {
              expect(await reachAny(attacker, [[ip, 8080]])).toEqual([]);
              expect(
                (await shell(attacker, `busybox nc -u -w 1 ${ip} 8080 </dev/null; ping -c 1 -W 1 ${ip}`)).code,
              ).not.toBe(0);
            }),
          );
          await Promise.all(attacks);
          // Nor does the world dial in; the host alone does.
          expect(await world.reach(ip, 8080)).toBe('');
        },
        command,
      );
    });

    it('no listener of the host: loopback, gateway, its own addresses, IPv6', async () => {
      const loopback = await speaker('loopback', '127.0.0.1');
      const everywhere = await speaker('everywhere', '::');
      try {
        const own = ownAddresses();
        expect(own.length).toBeGreaterThan(0);
        await withSandbox(restricted, async (sandbox) => {
          const gateway = (await shell(sandbox, 'ip route')).out.match(/default via (\S+)/)?.[1] ?? '';
          for (const address of ['127.0.0.1', gateway, ...own]) {
            expect((await host('busybox', 'nc', '-w', '2', address, String(everywhere.port))).out, address).toBe(
              'everywhere',
            );
          }
          expect((await host('busybox', 'nc', '-w', '2', '127.0.0.1', String(loopback.port))).out).toBe('loopback');
          const names = ['127.0.0.1', 'localhost', 'platform.internal', '0.0.0.0', '::1', '::ffff:127.0.0.1'];
          const addresses = [...names, gateway, ...own];
          expect(await reachAny(sandbox, [...at(addresses, loopback.port), ...at(addresses, everywhere.port)])).toEqual(
            [],
          );
          // The host's end of the pair has a link-local IPv6 address, on which the host answers itself.
          const ends = (await host('ip', '-6', '-o', 'addr', 'show', 'scope', 'link')).out.matchAll(
            /^\d+: (veth\S+|ap\w+-\w+)\s+inet6 (fe80\S+)\//gm,
          );
          const linkLocal = [...ends].map(([, , address]) => `${address}%eth0`);
          expect(await reachAny(sandbox, at(linkLocal, everywhere.port))).toEqual([]);
          // A network stack of its own gives itself such an address, to no avail.
          if (!ownStack) expect((await shell(sandbox, 'ip -6 addr show dev eth0')).out).not.toContain('inet6');
        });
        // It is the policy that keeps it away: the same listener is reached once its address is allowed.
        await withSandbox({ ...restricted, allowCidrs: [`${own[0]}/32`] }, async (sandbox) => {
          expect(await reach(sandbox, own[0] ?? '', everywhere.port)).toBe('everywhere');
          expect(await reachAny(sandbox, [[own[0] ?? '', loopback.port]])).toEqual([]);
        });
      } finally {
        loopback.close();
        everywhere.close();
      }
    });

    it('the sandbox endpoint, when its policy has one, and is known there by its own address', async () => {
      // The control: the endpoint answers whoever reaches it.
      expect((await host('busybox', 'nc', '-w', '2', '127.0.0.1', String(endpoint.port))).out).toBe('127.0.0.1');
      const checks = [closed, restricted].flatMap((policy) => [
        withSandbox({ ...policy, sandboxEndpoint: true }, async (sandbox) => {
          expect(await reach(sandbox, SANDBOX_ENDPOINT_ADDRESS, 80)).toBe(sandbox.address(80).host);
          const others = at([SANDBOX_ENDPOINT_ADDRESS, '127.0.0.1', 'platform.internal'], endpoint.port);
          expect(await reachAny(sandbox, others)).toEqual([]);
        }),
        withSandbox(policy, async (sandbox) => {
          expect(await reachAny(sandbox, [[SANDBOX_ENDPOINT_ADDRESS, 80]])).toEqual([]);
        }),
      ]);
      await Promise.all(checks);
    });

    it("a listener on the host's loopback by its port and the name platform.internal, and no other port", async () => {
      const given = await speaker('given', '127.0.0.1');
      const other = await speaker('other', '127.0.0.1');
      try {
        const checks = [closed, restricted].map((policy) =>
          withSandbox({ ...policy, hostPorts: [given.port] }, async (sandbox) => {
            expect(await reach(sandbox, 'platform.internal', given.port)).toBe('given');
            expect(await reach(sandbox, 'host.docker.internal', given.port)).toBe('given');
            expect(await reachAny(sandbox, [['platform.internal', other.port]])).toEqual([]);
          }),
        );
        const without = withSandbox(restricted, async (sandbox) => {
          expect(await reachAny(sandbox, [['platform.internal', given.port]])).toEqual([]);
        });
        await Promise.all([...checks, without]);
      } finally {
        given.close();
        other.close();
      }
    });

    it("no host loopback by routes of its own, even with root's rights over its interfaces", async (context) => {
      if (ownStack)
        return context.skip('its network stack is its own: there is nothing in the host’s to have rights over');
      const listener = await speaker('loopback', '127.0.0.1');
      const given = await speaker('given', '127.0.0.1');
      try {
        // hostPorts makes the host accept translated packets to 127.0.0.1 on that interface: the case where the defence matters.
        await withSandbox({ ...restricted, hostPorts: [given.port] }, async (sandbox) => {
          const net = `/proc/${await hostPid(sandbox)}/ns/net`;
          const platform = (await shell(sandbox, 'grep platform.internal /etc/hosts')).out.split(/\s/)[0] ?? '';
          const gateway = (await shell(sandbox, 'ip route')).out.match(/default via (\S+)/)?.[1] ?? '';
          const enter = async (script: string): Promise<string> =>
            (await host('nsenter', `--net=${net}`, 'sh', '-c', script)).out;
          const script = (port: number, to: string): string =>
            `ip addr del 127.0.0.1/8 dev lo 2>/dev/null; ip route replace 127.0.0.0/8 via ${gateway} dev eth0; sysctl -qw net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.eth0.route_localnet=1; busybox nc -w 2 ${to} ${port} </dev/null`;
          expect(await enter(script(given.port, platform))).toBe('given');
          expect(await enter(script(listener.port, '127.0.0.1'))).toBe('');
          expect(await enter(script(given.port, '127.0.0.1'))).toBe('');
          // Nor does another source address than its own get through.
          expect(
            await enter(
              `ip addr add 10.9.8.7/32 dev eth0; busybox nc -s 10.9.8.7 -w 2 ${platform} ${given.port} </dev/null`,
            ),
          ).toBe('');
        });
      } finally {
        listener.close();
        given.close();
      }
    });

    it('names, through the gateway', async () => {
      await withSandbox(restricted, async (sandbox) => {
        expect((await shell(sandbox, 'nslookup ok.test')).out).toContain(WORLD.public);
        expect(resolver.asked()).toBeGreaterThan(0);
        // A name for a private address resolves, and its address stays closed.
        expect((await shell(sandbox, 'nslookup rebind.test')).out).toContain(WORLD.metadata);
        expect(await reach(sandbox, 'ok.test', PORT)).toBe('world\n');
        expect(await reachAny(sandbox, [['rebind.test', PORT]])).toEqual([]);
      });
    });

    it('nothing at all when the rules cannot be put in force: it is not started', async () => {
      const broken = await open({ nft: '/bin/false', poolSize: 0 });
      await expect(broken.create({ network: restricted })).rejects.toMatchObject({
        name: 'SandboxError',
        reason: 'refused',
      });
      let failing = false;
      const later = await open({
        poolSize: 0,
        run: (argv, options) =>
          failing && argv[0] === 'nft'
            ? Promise.resolve({ code: 1, stdout: '', stderr: 'no' })
            : runCommand(argv, options),
      });
      await (await later.create({ network: restricted })).stop();
      failing = true;
      await expect(later.create({ network: restricted })).rejects.toMatchObject({
        name: 'SandboxError',
        reason: 'refused',
      });
      failing = false;
      for (const { dir } of [broken, later]) expect((await host('ls', '-A', `${dir}/data/sandboxes`)).out).toBe('');
      await later.close();
      await broken.close().catch(() => undefined);
    });
  });
}

interface World {
  /** What a server says to the world. */
  reach(address: string, port: number): Promise<string>;
  close(): Promise<void>;
}

/** A network namespace with the world's addresses, each served on PORT, and routes of the host to them. */
async function openWorld(name: string): Promise<World> {
  const id = `apw${process.pid}`;
  const script = [
    `ip netns add ${id}`,
    `ip link add ${id} type veth peer name eth0 netns ${id}`,
    `ip addr add 192.0.0.9/30 dev ${id}`,
    `ip link set ${id} up`,
    `ip -n ${id} addr add 192.0.0.10/30 dev eth0`,
    `ip -n ${id} link set lo up`,
    `ip -n ${id} link set eth0 up`,
    `ip -n ${id} route add default via 192.0.0.9`,
    ...Object.values(WORLD).flatMap((address) => [
      `ip -n ${id} addr add ${address}/32 dev lo`,
      `ip route add ${address}/32 via 192.0.0.10 dev ${id}`,
    ]),
  ];
  const made = await host('sh', '-ec', script.join('\n'));
  expect(made).toEqual({ code: 0, out: '' });
  const server = spawn(
    'ip',
    ['netns', 'exec', id, 'busybox', 'nc', '-ll', '-p', String(PORT), '-e', '/bin/echo', 'world'],
    { stdio: 'ignore' },
  );
  return {
    reach: async (address, port) =>
      (await host('ip', 'netns', 'exec', id, 'busybox', 'nc', '-w', '1', address, String(port))).out,
    async close() {
      server.kill('SIGKILL');
      await host('sh', '-c', `ip link del ${id}; ip netns del ${id}; rm -rf ${name}`);
    },
  };
}

interface Resolver {
  socket: Socket;
  port: number;
  asked(): number;
}

/** Answers every A question: `rebind.*` with the metadata address, anything else with the public one. */
async function openResolver(): Promise<Resolver> {
  const socket = createSocket('udp4');
  let asked = 0;
  socket.on('message', (question, from) => {
    asked++;
    const end = question.indexOf(0, 12) + 5;
    const isA = question.readUInt16BE(end - 4) === 1;
    const address = question.subarray(13, 19).toString() === 'rebind' ? WORLD.metadata : WORLD.public;
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(isA ? 1 : 0, 6);
    header.writeUInt32BE(0, 8);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, ...address.split('.').map(Number)]);
    socket.send(Buffer.concat([header, question.subarray(12, end), ...(isA ? [answer] : [])]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { socket, port: socket.address().port, asked: () => asked };
}

/** A listener that says who has come. */
async function openSandboxEndpoint(): Promise<{ port: number; close(): void }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(socket.remoteAddress ?? '');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { port, close: () => server.close() };
}
