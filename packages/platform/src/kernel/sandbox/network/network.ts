import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import { HELPER_ENV, type RunCommand } from '../../processes/index.ts';
import type { Instance } from '../host/instance.ts';
import { type NetworkPolicy, SandboxError } from '../sandbox.ts';
import { cniConfig } from './cni.ts';
import type { Nft } from './nft.ts';
import { baseRules, forgetRules, memberRules, type Nameserver, policyRules } from './nft-rules.ts';
import { claimSubnet, releaseSubnet, type Subnet } from './subnets.ts';

export interface NetworkOptions {
  instance: Instance;
  run: RunCommand;
  nft: Nft;
  /** Where the CNI plugins are; undefined when somebody else gives addresses and interfaces. */
  cniDir: string | undefined;
  /** Where platforms on this machine agree on address ranges. */
  registryDir: string;
  /** The host's resolver; read from /etc/resolv.conf when not given. */
  nameserver?: Nameserver;
  /** Port of 127.0.0.1 behind `SANDBOX_ENDPOINT_ADDRESS`. */
  sandboxEndpoint?: number | undefined;
}

/** An interface of the host that leads to one sandbox. */
export interface Attachment {
  slot: string;
  hostInterface: string;
}

/** Addresses by CNI plugins, policy by one nftables table of this instance. Every method that must close something rejects when it cannot. */
export class SandboxNetwork {
  readonly subnet: Subnet;
  #options: NetworkOptions;
  #nameserver: Nameserver | undefined;

  private constructor(options: NetworkOptions, subnet: Subnet, nameserver: Nameserver | undefined) {
    this.#options = options;
    this.subnet = subnet;
    this.#nameserver = nameserver;
  }

  /** Claims addresses and puts the table in force. Rejects with SandboxError: `refused` when the rules cannot be applied. */
  static async open(options: NetworkOptions): Promise<SandboxNetwork> {
    const routes = await readFile('/proc/net/route', 'utf8').catch(() => '');
    const { instance, registryDir, nft } = options;
    const subnet = await claimSubnet(instance.dataDir, { registryDir, routes, rules: await nft.ruleset() });
    const network = new SandboxNetwork(options, subnet, options.nameserver ?? (await hostNameserver()));
    await network.#enforce(
      baseRules({
        table: options.instance.prefix,
        subnet: subnet.cidr,
        gateway: subnet.gateway,
        nameserver: network.#nameserver,
        sandboxEndpoint: options.sandboxEndpoint,
      }),
    );
    return network;
  }

  get cniConfig(): string {
    const { instance } = this.#options;
    return cniConfig({
      network: instance.prefix,
      subnet: this.subnet.cidr,
      gateway: this.subnet.gateway,
      leases: instance.leases,
    });
  }

  /** Puts a new interface under the rules: nothing is allowed yet. */
  async admit(hostInterface: string): Promise<void> {
    await this.#enforce(memberRules(this.#options.instance.prefix, hostInterface));
  }

  /** Opens what `policy` names. */
  async open(hostInterface: string, policy: NetworkPolicy): Promise<void> {
    const toLoopback =
      policy.sandboxEndpoint || policy.hostPorts.length > 0 || this.#nameserver?.address.startsWith('127.');
    // A packet that we translate to 127.0.0.1 is dropped on arrival otherwise. What the sandbox itself addresses to 127/8 the table drops first.
    if (toLoopback) await this.#sysctl(hostInterface, 'route_localnet', '1');
    await this.#enforce(policyRules(this.#options.instance.prefix, hostInterface, policy));
  }

  /** Contents of /etc/hosts and /etc/resolv.conf of a sandbox. */
  files(hostname: string, ip: string, policy: NetworkPolicy): { path: string; text: string }[] {
    const named = (policy.endpoints ?? []).filter(({ host }) => !isIPv4(host));
    const pinned = named.flatMap(({ host, addresses }) => addresses.map((address) => `${address} ${host}\n`));
    const hosts = [
      '127.0.0.1 localhost\n::1 ip6-localhost\n',
      `${ip} ${hostname}\n${this.subnet.gateway} platform.internal host.docker.internal\n`,
      ...new Set(pinned),
    ].join('');
    const resolves = policy.egress === 'restricted' && this.#nameserver;
    return [
      { path: '/etc/hosts', text: hosts },
      {
        path: '/etc/resolv.conf',
        text: resolves ? `nameserver ${this.subnet.gateway}\noptions timeout:3 attempts:2\n` : '',
      },
      { path: '/etc/hostname', text: `${hostname}\n` },
    ];
  }

  /** Gives the address back and forgets the interface; what is gone already is no error. */
  async release({ slot, hostInterface }: Attachment, policy: NetworkPolicy | undefined): Promise<void> {
    const results = await Promise.allSettled([this.forget(hostInterface, policy), this.#releaseLease(slot)]);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Takes an interface out of the rules: its sandbox has no network from then on. */
  forget(hostInterface: string, policy: NetworkPolicy | undefined): Promise<void> {
    return this.#options.nft.apply(forgetRules(this.#options.instance.prefix, hostInterface, policy));
  }

  /** Releases leases and interfaces that none of `owned` holds. Returns how many there were. */
  async sweep(owned: readonly Attachment[]): Promise<number> {
    const { instance, nft } = this.#options;
    const slots = new Set(owned.map((attachment) => attachment.slot));
    const interfaces = new Set(owned.map((attachment) => attachment.hostInterface));
    const orphans = (await this.#leases()).filter((slot) => !slots.has(slot));
    for (const slot of orphans) await this.#releaseLease(slot);
    let removed = orphans.length;
    for (const set of ['members', 'restricted', 'hostports', 'doors', 'allowed', 'endpoints']) {
      const stale = (await nft.list(instance.prefix, set)).filter(({ ifname }) => !interfaces.has(ifname));
      await nft.apply(
        stale.map(({ element }) => `delete element inet ${instance.prefix} ${set} { ${element} }\n`).join(''),
      );
      removed += stale.length;
    }
    return removed;
  }

  /** Removes the table and the claim on the address range; for an instance without sandboxes. */
  async dispose(): Promise<void> {
    const { instance, nft, registryDir } = this.#options;
    await nft.apply(`add table inet ${instance.prefix}\ndelete table inet ${instance.prefix}\n`);
    await rm(join(instance.leases, instance.prefix), { recursive: true, force: true });
    await releaseSubnet(instance.dataDir, this.subnet, registryDir);
  }

  async #enforce(rules: string): Promise<void> {
    try {
      await this.#options.nft.apply(rules);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new SandboxError(
        'refused',
        `The sandbox's network rules could not be put in force, so it was not started: ${why}`,
        { cause: error },
      );
    }
  }

  async #sysctl(hostInterface: string, name: string, value: string): Promise<void> {
    await writeFile(`/proc/sys/net/ipv4/conf/${hostInterface}/${name}`, value);
  }

  /** host-local keeps one file per address, whose first line is the name that leased it. */
  async #leases(): Promise<string[]> {
    const dir = join(this.#options.instance.leases, this.#options.instance.prefix);
    const names = (await readdir(dir).catch(() => [])).filter((name) => isIPv4(name));
    const slots = await Promise.all(names.map((name) => readFile(join(dir, name), 'utf8').catch(() => '')));
    return slots.map((text) => text.split(/\r?\n/)[0] ?? '').filter((slot) => slot !== '');
  }

  async #releaseLease(slot: string): Promise<void> {
    const { run, cniDir } = this.#options;
    if (cniDir === undefined) return;
    const { code, stdout, stderr } = await run([`${cniDir}/ptp`], {
      input: this.cniConfig,
      env: { ...HELPER_ENV, CNI_COMMAND: 'DEL', CNI_CONTAINERID: slot, CNI_IFNAME: 'eth0', CNI_PATH: cniDir },
    });
    if (code !== 0) throw new Error(`address of ${slot} could not be released: ${stdout}${stderr}`.slice(0, 500));
  }
}

async function hostNameserver(): Promise<Nameserver | undefined> {
  const text = await readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  const addresses = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? '');
  const address = addresses.find((candidate) => isIPv4(candidate));
  return address ? { address, port: 53 } : undefined;
}
