import ipaddr from 'ipaddr.js';
import { Lru } from '../lru.ts';

/** What bounds of one address do not hold for: this machine's own programs, and proxies that stand for many clients. */
export class TrustedAddresses {
  readonly #ranges: readonly (readonly [network: ipaddr.IPv4 | ipaddr.IPv6, bits: number])[];
  /** A look at the ranges costs more than a request should. */
  readonly #known = new Lru<string, boolean>(10_000);

  /** `ranges` as `isCidr` has them. */
  constructor(ranges: readonly string[]) {
    this.#ranges = ranges.map(parse);
  }

  /** `address` as a socket has it. */
  has(address: string | undefined): boolean {
    if (address === undefined) return false;
    const known = this.#known.get(address);
    if (known !== undefined) return known;
    const found = this.#look(address);
    this.#known.set(address, found);
    return found;
  }

  #look(text: string): boolean {
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return this.#ranges.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits));
  }
}

/** A range of IPv4 in its IPv6 form is one of IPv4, since that is what addresses are taken for. */
function parse(range: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const [network, bits] = ipaddr.parseCIDR(range);
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && bits >= 96)
    return [network.toIPv4Address(), bits - 96];
  return [network, bits];
}

/** The machine that the platform runs on. */
export const LOOPBACK = ['127.0.0.0/8', '::1/128'];
