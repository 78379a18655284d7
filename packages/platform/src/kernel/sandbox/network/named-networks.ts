import { errors } from '@agentplatform/contract';
import { isCidr } from '../../is-cidr.ts';
import type { NetworkPolicy } from '../sandbox.ts';

/** A network as the wire names it: of a code interpreter or of a browser. */
export interface NamedNetwork {
  networkMode: 'PUBLIC' | 'SANDBOX' | 'VPC';
  vpcConfig?: { subnets: readonly string[] };
}

export interface NamedNetworkSettings {
  /** The setting of the platform that names subnets. */
  setting: string;
  /** What PUBLIC means on this platform. */
  public: NetworkPolicy;
  /** Private ranges by subnet id, for VPC. */
  subnets: ReadonlyMap<string, readonly string[]>;
}

const SUBNET = /^subnet-[0-9a-zA-Z]{8,17}$/;

/** What the network modes of the wire mean for a sandbox. */
export class NamedNetworks {
  readonly #settings: NamedNetworkSettings;

  constructor(settings: NamedNetworkSettings) {
    this.#settings = settings;
  }

  /** Throws ValidationException for a network that cannot be had: a session never gets another one than it was promised. */
  check(network: NamedNetwork): void {
    if (network.networkMode !== 'VPC') {
      if (network.vpcConfig)
        throw errors.invalidField('networkConfiguration.vpcConfig', `does not go with mode ${network.networkMode}`);
      return;
    }
    const subnets = network.vpcConfig?.subnets ?? [];
    if (subnets.length === 0) throw errors.invalidField('networkConfiguration.vpcConfig', 'is required by mode VPC');
    const unknown = subnets.filter((subnet) => !this.#settings.subnets.has(subnet));
    if (unknown.length > 0) {
      const known = [...this.#settings.subnets.keys()].join(', ') || 'none';
      throw errors.invalidField(
        'networkConfiguration.vpcConfig.subnets',
        `names ${unknown.join(', ')}, which the platform's configuration does not; it names: ${known}`,
        { remedy: `The operator names subnets in ${this.#settings.setting}.` },
      );
    }
  }

  policy(network: NamedNetwork): NetworkPolicy {
    const { public: open, subnets } = this.#settings;
    switch (network.networkMode) {
      case 'SANDBOX':
        return { egress: 'none', allowCidrs: [], hostPorts: [] };
      case 'PUBLIC':
        return open;
      case 'VPC':
        this.check(network);
        return {
          egress: 'none',
          allowCidrs: (network.vpcConfig?.subnets ?? []).flatMap((subnet) => subnets.get(subnet) ?? []),
          hostPorts: [],
        };
    }
  }
}

/** Reads `subnet-…=10.1.0.0/16,…`, several ranges of one subnet allowed. Text of another form is refused with Error, which names the setting. */
export function subnetMap(text: string, setting: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const item of text.split(',').filter((part) => part.trim() !== '')) {
    const [subnet = '', cidr = ''] = item.trim().split('=');
    if (!SUBNET.test(subnet) || !isCidr(cidr))
      throw new Error(`${setting}: "${item}" is not of the form subnet-0123456789abcdef0=10.1.0.0/16.`);
    found.set(subnet, [...(found.get(subnet) ?? []), cidr]);
  }
  return found;
}
