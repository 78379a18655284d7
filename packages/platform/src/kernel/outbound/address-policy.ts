import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Says whether a connection to an IP address is allowed. */
export interface AddressPolicy {
  /** `undefined` when allowed, else the reason in a few words, e.g. `a loopback address`. */
  refusal(address: string): string | undefined;
}

/** For addresses that the operator of the platform configured himself. */
export const ANYWHERE: AddressPolicy = { refusal: () => undefined };

interface Opening {
  network: Address;
  bits: number;
  kind: string;
}

const NAMES: Record<string, string> = {
  unspecified: 'an unspecified address',
  broadcast: 'a broadcast address',
  multicast: 'a multicast address',
  linkLocal: 'a link-local address',
  loopback: 'a loopback address',
  carrierGradeNat: 'a carrier-grade NAT address',
  private: 'a private address',
  uniqueLocal: 'a private address',
  deprecatedSiteLocal: 'a private address',
  reserved: 'a reserved address',
};

/** A wide opening such as 0.0.0.0/0 does not reach these; only a range that lies inside them does. */
const NEEDS_OWN_OPENING = new Set(['linkLocal', 'multicast', 'unspecified', 'broadcast']);

/**
 * Makes the policy "public unicast addresses, and what `allowPrivate` (CIDR ranges or single addresses) opens".
 * Throws `TypeError` naming the range that cannot be parsed.
 */
export function createAddressPolicy(allowPrivate: readonly string[] = []): AddressPolicy {
  const openings = allowPrivate.map(parseRange);
  return {
    refusal(text) {
      const parsed = parseAddress(text);
      if (!parsed) return 'not an IP address';
      const address = unwrap(parsed);
      const kind = classify(address);
      if (kind === 'public') return undefined;
      const open = openings.some(
        (o) =>
          o.network.kind() === address.kind() &&
          address.match(o.network, o.bits) &&
          (!NEEDS_OWN_OPENING.has(kind.split(' ')[0] ?? kind) || o.kind === kind),
      );
      return open ? undefined : (NAMES[kind] ?? `an address of a special range (${kind})`);
    },
  };
}

function parseRange(text: string): Opening {
  const [base = '', bits, rest] = text.trim().split('/');
  const network = parseAddress(base);
  const width = network?.kind() === 'ipv4' ? 32 : 128;
  const length = bits === undefined ? width : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (!network || rest !== undefined || !(length >= 0 && length <= width)) {
    throw new TypeError(`"${text}" is not a CIDR range; write for example 10.0.0.0/8 or fd00::/8`);
  }
  // A range wider than its class (0.0.0.0/0) carries no kind of its own.
  const kind = length >= (network.kind() === 'ipv4' ? 4 : 8) ? classify(network) : 'wide';
  return { network, bits: length, kind };
}

/** Parses canonical dotted IPv4 and every textual IPv6 form; a zone index makes the address link-local, so it is dropped. */
function parseAddress(text: string): Address | undefined {
  const bare = text.split('%')[0] ?? '';
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  if (!isIPv6(bare)) return undefined;
  // The library takes the obsolete ::a.b.c.d for ::ffff:a.b.c.d, the kernel does not.
  return ipaddr.IPv6.parse(bare.includes('.') ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : bare);
}

/** IPv4-mapped addresses reach the IPv4 network itself, so they are judged as that. */
function unwrap(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** `public`, or the name of the special range. */
function classify(address: Address): string {
  if (address instanceof ipaddr.IPv4) {
    const range = address.range();
    return range === 'unicast' ? 'public' : range;
  }
  const parts = address.parts;
  const low = embeddedIPv4(parts, 6);
  // NAT64 (RFC 6052): a translator sends it on to the embedded IPv4 address, which decides.
  if (startsWith(parts, [0x64, 0xff9b, 0, 0, 0, 0])) return nested(low, 'nat64');
  const range = address.range();
  if (range !== 'unicast') return range;
  // Outside 2000::/3 nothing is global unicast; this closes IPv4-compatible ::a.b.c.d (RFC 4291) too.
  if (((parts[0] ?? 0) & 0xe000) !== 0x2000) return 'not global unicast';
  // ISATAP (RFC 5214) interface identifiers tunnel to the embedded IPv4 address.
  if (((parts[4] ?? 0) & 0xfdff) === 0 && parts[5] === 0x5efe) return nested(low, 'isatap');
  return 'public';
}

function nested(v4: ipaddr.IPv4, via: string): string {
  const kind = classify(v4);
  return kind === 'public' ? 'public' : `${kind} through ${via}`;
}

function embeddedIPv4(parts: number[], at: number): ipaddr.IPv4 {
  const high = parts[at] ?? 0;
  const low = parts[at + 1] ?? 0;
  return new ipaddr.IPv4([high >> 8, high & 255, low >> 8, low & 255]);
}

function startsWith(parts: number[], prefix: number[]): boolean {
  return prefix.every((part, i) => parts[i] === part);
}
