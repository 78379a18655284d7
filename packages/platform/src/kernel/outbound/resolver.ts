import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '../clock.ts';
import type { AddressPolicy } from './address-policy.ts';
import { asOutboundError, OutboundError } from './errors.ts';
import { assertAddress } from './target.ts';

export interface ResolvedAddress {
  address: string;
  family: 4 | 6;
}

/** Turns a host name into all its addresses; who aborts waits no more, and nothing is begun for him alone. */
export type Resolve = (hostname: string, signal?: AbortSignal) => Promise<readonly ResolvedAddress[]>;

const MOST_ADDRESSES = 16;

/**
 * Resolves once and returns only addresses that may be connected to; when none may, throws `ADDRESS_REFUSED`.
 * Whoever connects must use exactly what is returned: asking the resolver again would let its answer change (DNS rebinding).
 */
export function createGuardedResolve(deps: {
  resolve: Resolve;
  addresses: AddressPolicy;
  clock: Clock;
  timeoutMs: number;
}): Resolve {
  return async (hostname) => {
    const found = isIP(hostname)
      ? [{ address: hostname, family: isIP(hostname) === 6 ? (6 as const) : (4 as const) }]
      : await bounded(deps, hostname);
    const first = found[0];
    if (!first) throw new OutboundError('NAME_NOT_RESOLVED', `${hostname} has no address`);
    const open = found.slice(0, MOST_ADDRESSES).filter(({ address }) => deps.addresses.refusal(address) === undefined);
    if (open.length === 0) assertAddress(hostname, first.address, deps.addresses);
    return open;
  };
}

function bounded(
  deps: { resolve: Resolve; clock: Clock; timeoutMs: number },
  hostname: string,
): Promise<readonly ResolvedAddress[]> {
  return new Promise((done, fail) => {
    const ending = new AbortController();
    const cancel = deps.clock.after(deps.timeoutMs, () => {
      const late = new OutboundError('NAME_NOT_RESOLVED', `${hostname} was not resolved within ${deps.timeoutMs} ms`);
      fail(late);
      ending.abort(late);
    });
    deps
      .resolve(hostname, ending.signal)
      .then(done, (cause: unknown) =>
        fail(
          asOutboundError(cause) ??
            new OutboundError('NAME_NOT_RESOLVED', `${hostname} could not be resolved`, { cause }),
        ),
      )
      .finally(cancel);
  });
}

/** The guarded resolver in the shape of Node's `lookup` option, for sockets made by others (undici, ws, tls). */
export function toLookup(resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (all) => {
        const wanted =
          options.family === 4 || options.family === 6 ? all.filter((a) => a.family === options.family) : all;
        const [first] = wanted;
        if (!first)
          callback(new OutboundError('NAME_NOT_RESOLVED', `${hostname} has no address of that family`), '', 0);
        else if (options.all) callback(null, [...wanted]);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, '', 0),
    );
  };
}
