import { asOutboundError } from './errors.ts';
import type { Outbound } from './outbound.ts';

/**
 * Why the platform will not call an address that a user configures, as far as it can be told now; undefined when it may be called.
 * A name that has no address yet is no reason, nor is one that cannot be looked up now. What is called later is judged again then: names move. The text does not say what a
 * name resolves to, so that nobody reads the names of a private network with it.
 */
export async function refusalOf(
  outbound: Pick<Outbound, 'check' | 'resolve'>,
  url: string,
): Promise<string | undefined> {
  try {
    const { hostname } = outbound.check(url);
    await outbound.resolve(hostname.replace(/^\[|\]$/g, ''));
    return undefined;
  } catch (error) {
    switch (asOutboundError(error)?.code) {
      case 'ADDRESS_REFUSED':
        return 'names a loopback, private or other special address, which the platform does not call';
      case 'BAD_URL':
        return 'is not a URL';
      case 'SCHEME_REFUSED':
        return 'must begin with https:// or http://';
      case 'USERINFO_REFUSED':
        return 'must not carry a user name or password';
      case 'PORT_REFUSED':
        return 'names a port that the platform does not call';
      case 'NAME_NOT_RESOLVED':
      case 'OVERLOADED':
        return undefined;
      default:
        throw error;
    }
  }
}
