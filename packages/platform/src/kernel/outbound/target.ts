import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';
import { OutboundError } from './errors.ts';

export interface TargetRules {
  addresses: AddressPolicy;
  /** Ports that may be reached; `undefined` means any. */
  ports?: readonly number[];
}

/**
 * Parses and judges a user-supplied URL before any name is resolved: scheme, user information, port, and the address
 * when the host is one. The WHATWG parser has already turned decimal, octal, hex and short host forms into dotted IPv4.
 * Throws `OutboundError`.
 */
export function checkTarget(input: string | URL, rules: TargetRules): URL {
  let url: URL;
  try {
    url = new URL(input);
  } catch {
    throw new OutboundError('BAD_URL', `"${String(input).slice(0, 200)}" is not a URL`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new OutboundError('SCHEME_REFUSED', `only http and https addresses are called, not ${url.protocol}`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new OutboundError('USERINFO_REFUSED', 'an address must not carry a user name or password');
  }
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (port === 0 || (rules.ports && !rules.ports.includes(port))) {
    throw new OutboundError('PORT_REFUSED', `port ${port} may not be called`);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host)) assertAddress(host, host, rules.addresses);
  return url;
}

/**
 * Throws `ADDRESS_REFUSED` when `address`, to which `host` resolved, is closed. What a name resolves to is not said: nobody reads
 * the names of a private network here.
 */
export function assertAddress(host: string, address: string, policy: AddressPolicy): void {
  const reason = policy.refusal(address);
  if (reason === undefined) return;
  const why =
    host === address
      ? `${address} is ${reason}, which the platform does not call`
      : `${host} has no address that the platform calls`;
  throw new OutboundError('ADDRESS_REFUSED', `${why}; an operator can open a range with --allow-private-egress`);
}
