import { expect, it } from 'vitest';
import { LOOPBACK, TrustedAddresses } from './trusted-addresses.ts';

it('knows ranges, also of IPv4 in its IPv6 form', () => {
  const trusted = new TrustedAddresses([...LOOPBACK, '10.1.0.0/16']);
  const look = () =>
    ['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.1.255.1', '10.2.0.1', '2001:db8::1', undefined].map((address) =>
      trusted.has(address),
    );
  expect(look()).toEqual([true, true, true, true, false, false, false]);
  // The same from memory.
  expect(look()).toEqual([true, true, true, true, false, false, false]);
  const mapped = new TrustedAddresses(['::ffff:10.1.0.0/112', '2001:db8::/32']);
  const addresses = ['10.1.2.3', '::ffff:10.1.2.3', '10.2.0.1', '2001:db8:1::1', '::1', 'nowhere'];
  expect(addresses.map((address) => mapped.has(address))).toEqual([true, true, false, true, false, false]);
  expect(new TrustedAddresses([]).has('127.0.0.1')).toBe(false);
});
