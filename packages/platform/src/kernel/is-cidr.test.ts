import { expect, it } from 'vitest';
import { isCidr, isIpv4Cidr } from './is-cidr.ts';

it.each([
  ['10.0.0.0/8', true],
  ['0.0.0.0/0', true],
  ['10.1.2.3/32', true],
  ['::1/128', false],
  ['fd00::/8', false],
  ['::ffff:10.0.0.0/104', false],
])('%s is a range', (text, ofIpv4) => {
  expect(isCidr(text)).toBe(true);
  expect(isIpv4Cidr(text)).toBe(ofIpv4);
});

it.each(['10/8', '010.0.0.0/8', '0x0a000000/8', '10.0.0.0', '10.0.0.0/33', '::1/129', '10.0.0.0/', '/8', 'ten/8'])(
  '%s is none',
  (text) => {
    expect(isCidr(text)).toBe(false);
  },
);
