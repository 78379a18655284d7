import { access } from 'node:fs/promises';
import type { Instance } from '../host/instance.ts';
import type { SandboxNetwork } from '../network/network.ts';
import { dotted } from '../network/subnets.ts';
import { items, property } from '../records/json-path.ts';
import { type NetworkPolicy, SandboxError } from '../sandbox.ts';
import { type DockerApi, DockerError } from './docker-api.ts';
import { DATA_LABEL, INSTANCE_LABEL } from './docker-record.ts';

/** A network of four addresses each: its own, the bridge's, the sandbox's and broadcast. The first four hold the gateway that all share by name. */
const SLOTS = 256;

export interface DockerNetworksOptions {
  api: DockerApi;
  firewall: SandboxNetwork;
  /** Its prefix names bridges and networks. */
  instance: Pick<Instance, 'prefix' | 'dataDir'>;
}

/** One bridge network for each sandbox, so that the platform's own packet rules can tell them apart by the host's interface. */
export class DockerNetworks {
  #options: DockerNetworksOptions;
  #taken = new Set<number>([0]);

  constructor(options: DockerNetworksOptions) {
    this.#options = options;
  }

  /** Finds the networks that exist already. */
  async load(): Promise<void> {
    for (const slot of await this.#existing()) this.#taken.add(slot);
  }

  name(slot: number): string {
    return `${this.#options.instance.prefix}-${slot.toString(36).padStart(2, '0')}`;
  }

  address(slot: number): { subnet: string; gateway: string; ip: string } {
    const base = this.#options.firewall.subnet.base + slot * 4;
    return { subnet: `${dotted(base)}/30`, gateway: dotted(base + 1), ip: dotted(base + 2) };
  }

  /** Makes a network with `policy` in force. Rejects with SandboxError: `refused` when the rules would not hold, `capacity` when all addresses are used. */
  async take(policy: NetworkPolicy): Promise<number> {
    const slot = Array.from({ length: SLOTS }, (_, index) => index).find((index) => !this.#taken.has(index));
    if (slot === undefined) throw new SandboxError('capacity', `There are ${SLOTS - 1} sandboxes already.`);
    this.#taken.add(slot);
    try {
      await this.#make(slot, policy);
      return slot;
    } catch (error) {
      await this.release(slot, policy).catch(() => undefined);
      throw error;
    }
  }

  /** Removes network and rules; what is gone already is no error. */
  async release(slot: number, policy: NetworkPolicy | undefined): Promise<void> {
    await removeNetwork(this.#options.api, this.name(slot));
    await this.#options.firewall.forget(this.name(slot), policy);
    this.#taken.delete(slot);
  }

  /** Removes the networks, and the rules, of all slots that are not in `kept`; not while sandboxes are being made. */
  async sweep(kept: ReadonlySet<number>): Promise<void> {
    for (const slot of await this.#existing())
      if (!kept.has(slot)) await removeNetwork(this.#options.api, this.name(slot));
    await this.#options.firewall.sweep([...kept].map((slot) => ({ slot: '', hostInterface: this.name(slot) })));
    // Only now: a number that is used again must find none of the old rules.
    for (const slot of this.#taken) if (slot !== 0 && !kept.has(slot)) this.#taken.delete(slot);
  }

  async #make(slot: number, policy: NetworkPolicy): Promise<void> {
    const { api, firewall, instance } = this.#options;
    const name = this.name(slot);
    const { subnet, gateway } = this.address(slot);
    // The rules first: the interface is under them from its first packet on.
    await firewall.admit(name);
    await api.json('POST', '/networks/create', {
      body: {
        Name: name,
        Driver: 'bridge',
        EnableIPv6: false,
        IPAM: { Config: [{ Subnet: subnet, Gateway: gateway }] },
        Options: {
          'com.docker.network.bridge.name': name,
          'com.docker.network.bridge.enable_icc': 'false',
          // Translation and filtering are in our own table.
          'com.docker.network.bridge.enable_ip_masquerade': 'false',
        },
        Labels: { [INSTANCE_LABEL]: instance.prefix, [DATA_LABEL]: instance.dataDir },
      },
    });
    // A daemon that is rootless, or in a machine of its own, has its bridges where our rules do not reach.
    const here = await access(`/sys/class/net/${name}`).then(
      () => true,
      () => false,
    );
    if (!here)
      throw new SandboxError(
        'refused',
        "The Docker daemon makes its networks somewhere else than on this host, where the sandbox's network rules would not hold. Use a daemon that runs on this host as root.",
      );
    await firewall.open(name, policy);
  }

  async #existing(): Promise<number[]> {
    const {
      api,
      instance: { prefix },
    } = this.#options;
    return (await networksOf(api, `${INSTANCE_LABEL}=${prefix}`))
      .map((network) => String(property(network, 'Name')))
      .filter((name) => name.startsWith(`${prefix}-`))
      .map((name) => Number.parseInt(name.slice(prefix.length + 1), 36))
      .filter((slot) => slot > 0 && slot < SLOTS);
  }
}

/** The daemon's networks that carry a label. */
export async function networksOf(api: DockerApi, label: string): Promise<unknown[]> {
  const networks = await api.json('GET', '/networks', { query: { filters: JSON.stringify({ label: [label] }) } });
  return items({ networks }, 'networks');
}

/** By name or id; gone already is no error. */
export async function removeNetwork(api: DockerApi, network: string): Promise<void> {
  await api.json('DELETE', `/networks/${network}`).catch((error: unknown) => {
    if (!(error instanceof DockerError) || error.status !== 404) throw error;
  });
}
