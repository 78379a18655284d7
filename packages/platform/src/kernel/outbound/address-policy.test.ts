import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAddressPolicy } from './address-policy.ts';
import { OutboundError } from './errors.ts';
import { checkTarget } from './target.ts';

const closed = createAddressPolicy();

describe('what is closed by default', () => {
  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::8.8.8.8',
    '2002:7f00:1::',
    '2002:808:808::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:db8::1',
    '2606:4700::5efe:10.0.0.1',
    '2606:4700::200:5efe:127.0.0.1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '100::1',
    '4000::1',
  ])('%s', (address) => expect(closed.refusal(address)).toBeTypeOf('string'));

  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700:4700::1111', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8'])(
    'but not %s',
    (address) => expect(closed.refusal(address)).toBeUndefined(),
  );

  it('anything that is no address', () => {
    for (const text of ['', 'localhost', '0x7f.1', '2130706433', '127.1', '1.2.3.4.5']) {
      expect(closed.refusal(text)).toBe('not an IP address');
    }
  });
});

describe('what an operator opens', () => {
  it('opens the range alone, in every encoding that is the same network', () => {
    const policy = createAddressPolicy(['127.0.0.0/8', 'fd00::/8', '10.1.2.3']);
    expect(policy.refusal('127.0.0.1')).toBeUndefined();
    expect(policy.refusal('::ffff:127.0.0.1')).toBeUndefined();
    expect(policy.refusal('fd00::1')).toBeUndefined();
    expect(policy.refusal('10.1.2.3')).toBeUndefined();
    expect(policy.refusal('10.1.2.4')).toBe('a private address');
    expect(policy.refusal('::1')).toBe('a loopback address');
    expect(policy.refusal('64:ff9b::127.0.0.1')).toBeTypeOf('string');
  });

  it('a wide range does not reach link-local (metadata) or multicast; their own range does', () => {
    const wide = createAddressPolicy(['0.0.0.0/0', '::/0']);
    expect(wide.refusal('10.0.0.1')).toBeUndefined();
    for (const address of ['169.254.169.254', '224.0.0.1', 'fe80::1', '64:ff9b::169.254.169.254', '::']) {
      expect(wide.refusal(address), address).toBeTypeOf('string');
    }
    expect(createAddressPolicy(['169.254.0.0/16']).refusal('169.254.169.254')).toBeUndefined();
  });

  it.each(['', '10.0.0.0/33', '10.0.0.0/x', '10.0.0/8', 'fd00::/129', 'localhost', '10.0.0.0/8/8', '10.0.0.0/-1'])(
    'refuses the range "%s" by name',
    (range) => expect(() => createAddressPolicy([range])).toThrow(/is not a CIDR range/),
  );
});

describe('checkTarget', () => {
  const check = (url: string): string => {
    try {
      return checkTarget(url, { addresses: closed }).href;
    } catch (error) {
      if (error instanceof OutboundError) return error.code;
      throw error;
    }
  };

  it.each([
    ['http://2130706433/', 'ADDRESS_REFUSED'],
    ['http://0x7f000001/', 'ADDRESS_REFUSED'],
    ['http://0177.0.0.1/', 'ADDRESS_REFUSED'],
    ['http://127.1/', 'ADDRESS_REFUSED'],
    ['http://0/', 'ADDRESS_REFUSED'],
    ['http://１２７.０.０.１/', 'ADDRESS_REFUSED'],
    ['http://127.0.0.1./', 'ADDRESS_REFUSED'],
    ['http://[::1]/', 'ADDRESS_REFUSED'],
    ['http://[::ffff:127.0.0.1]/', 'ADDRESS_REFUSED'],
    ['http://[0:0:0:0:0:ffff:7f00:1]/', 'ADDRESS_REFUSED'],
    ['http://user@example.com/', 'USERINFO_REFUSED'],
    ['http://:secret@example.com/', 'USERINFO_REFUSED'],
    ['http://example.com:0/', 'PORT_REFUSED'],
    ['file:///etc/passwd', 'SCHEME_REFUSED'],
    ['gopher://example.com/', 'SCHEME_REFUSED'],
    ['unix:/run/docker.sock', 'SCHEME_REFUSED'],
    ['//example.com/', 'BAD_URL'],
    ['http://[::1', 'BAD_URL'],
    ['', 'BAD_URL'],
    ['https://example.com/a?b#c', 'https://example.com/a?b#c'],
  ])('%s is %s', (url, expected) => expect(check(url)).toBe(expected));

  it('holds a list of ports, defaults included', () => {
    const rules = { addresses: closed, ports: [443] };
    expect(checkTarget('https://example.com/', rules).port).toBe('');
    expect(() => checkTarget('http://example.com/', rules)).toThrow(/port 80/);
    expect(() => checkTarget('https://example.com:8443/', rules)).toThrow(/port 8443/);
  });

  it('throws nothing but its own error on any text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webUrl(),
          fc.string().map((s) => `http://${s}/`),
        ),
        (text) => {
          check(text);
        },
      ),
    );
  });

  it('closes every 127/8 address however its number is written', () => {
    const part = fc.nat(255);
    fc.assert(
      fc.property(part, part, part, fc.constantFrom(10, 8, 16), (b, c, d, base) => {
        const number = ((127 << 24) | (b << 16) | (c << 8) | d) >>> 0;
        const text = base === 16 ? `0x${number.toString(16)}` : base === 8 ? `0${number.toString(8)}` : `${number}`;
        expect(check(`http://${text}/`)).toBe('ADDRESS_REFUSED');
      }),
    );
  });
});
