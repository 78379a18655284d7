import ipaddr from 'ipaddr.js';

/**
 * Whom an address of a connection stands for: an IPv4 address for itself, also in its IPv6 form; of IPv6 the /64, since one machine
 * has all of that.
 */
export function addressKey(address: string | undefined): string {
  if (address === undefined) return '';
  // Systems write an IPv4 address in one way only.
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}
