import { BlockList, isIP } from 'node:net';

/** Networks that are no part of the public internet (IANA's registries of special-purpose addresses). */
const SPECIAL = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Within 2000::/3, the only part of IPv6 that is handed out: protocol assignments (Teredo among them), documentation, 6to4.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
];
const GLOBAL_IPV6 = '2000::/3';

const special = listOf(SPECIAL);
const global6 = listOf([GLOBAL_IPV6]);

/** Whether a numeric address is one of the public internet; anything else (also an IPv4 address inside IPv6) is not. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return !special.check(address, 'ipv4');
  return version === 6 && global6.check(address, 'ipv6') && !special.check(address, 'ipv6');
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
