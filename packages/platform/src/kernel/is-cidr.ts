import ipaddr from 'ipaddr.js';

/** Whether `text` is a range in CIDR notation that everybody reads alike: of IPv4 with four decimal numbers, since `10/8` and `010.0.0.0/8` mean one thing here and another there. */
export function isCidr(text: string): boolean {
  return isIpv4Cidr(text) || ipaddr.IPv6.isValidCIDR(text);
}

export function isIpv4Cidr(text: string): boolean {
  return ipaddr.IPv4.isValidCIDRFourPartDecimal(text);
}
