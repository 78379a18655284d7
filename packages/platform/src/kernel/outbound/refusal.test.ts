import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createOutbound } from './outbound.ts';
import { refusalOf } from './refusal.ts';
import type { Resolve } from './resolver.ts';

const names: Record<string, string[]> = {
  'public.example': ['93.184.216.34'],
  'private.example': ['10.1.2.3'],
  'mixed.example': ['10.1.2.3', '93.184.216.34'],
  'opened.example': ['10.9.0.1'],
};
const resolve: Resolve = async (hostname) => {
  const found = names[hostname];
  if (!found) throw new Error('ENOTFOUND');
  return found.map((address) => ({ address, family: 4 as const }));
};
const outbound = createOutbound({ clock: systemClock, resolve, allowPrivate: ['10.9.0.0/16'] });
afterAll(() => outbound.close());

describe('an address that a user configures', () => {
  it.each([
    'https://public.example/.well-known/openid-configuration',
    'https://mixed.example/',
    'https://opened.example/',
    'http://10.9.0.1:8080/',
    'https://not-there-yet.example/',
  ])('may be %s', async (url) => expect(await refusalOf(outbound, url)).toBeUndefined());

  it.each([
    ['https://private.example/', 'private'],
    ['http://169.254.169.254/latest', 'special address'],
    ['http://[::1]:8080/', 'loopback'],
    ['http://0x7f000001/', 'loopback'],
    ['https://user:secret@public.example/', 'user name'],
    ['file:///etc/passwd', 'https://'],
    ['nothing', 'not a URL'],
  ])('may not be %s', async (url, why) => expect(await refusalOf(outbound, url)).toContain(why));

  it('is refused without a word of what its name resolves to', async () =>
    expect(await refusalOf(outbound, 'https://private.example/')).not.toContain('10.1.2.3'));
});
