import type { IncomingMessage } from 'node:http';
import type { OperationName, ServiceError } from '@agentplatform/contract';
import { ownerOf, type Principal } from '../auth/index.ts';
import type { Clock } from '../clock.ts';
import { addressKey } from './address-key.ts';
import { nameOf } from './audit-record.ts';
import { RateLimiter } from './rate-limiter.ts';
import type { Source } from './stages.ts';
import { tooMany } from './too-many.ts';
import type { TrustedAddresses } from './trusted-addresses.ts';

export interface RequestRatesOptions {
  /** Requests a second of one caller; 0 means no limit. */
  ofPrincipal: number;
  /** Requests a second of one address that are refused because nobody knows who sent them; 0 means no limit. */
  refusedOfAddress: number;
  /** Whom neither holds for. */
  trusted: Pick<TrustedAddresses, 'has'>;
  clock: Clock;
}

/** Gives the refusal of a request whose address has had its share; looked at before anything is done for it. */
export type Admit = (req: Pick<IncomingMessage, 'socket'>, operation?: OperationName) => ServiceError | undefined;

/** Keeps one caller from having all of the server, and one address from being refused without end. */
export class RequestRates {
  readonly #principals: RateLimiter;
  readonly #refusals: RateLimiter;
  readonly #trusted: RequestRatesOptions['trusted'];

  constructor({ ofPrincipal, refusedOfAddress, trusted, clock }: RequestRatesOptions) {
    this.#principals = new RateLimiter(ofPrincipal, clock);
    this.#refusals = new RateLimiter(refusedOfAddress, clock);
    this.#trusted = trusted;
  }

  /** Refuses what comes from an address that was refused too often within the last second. */
  readonly admit: Admit = ({ socket }, operation) => {
    const address = addressKey(socket.remoteAddress);
    const seconds = this.#refusals.look(address);
    if (seconds === 0) return undefined;
    const { perSecond } = this.#refusals;
    return tooMany(`${address} had more than ${perSecond} requests refused in a second`, {
      ...{ seconds, operation, remedy: 'Correct the credentials', setting: 'quotas.refusalsPerSecond' },
    });
  };

  /** A request was refused, and nobody knows who sent it. */
  refused({ socket: { remoteAddress } }: Pick<Source, 'socket'>): void {
    if (!this.#trusted.has(remoteAddress)) this.#refusals.tryTake(addressKey(remoteAddress));
  }

  /** Counts a request of a known caller. Throws ThrottlingException, or what its operation calls that. */
  take(principal: Principal, address: string | undefined, operation?: OperationName): void {
    // By owner: a caller who assumes a role names its sessions, and would get a separate rate for each name.
    const seconds = this.#principals.tryTake(ownerOf(principal));
    // Last, for it is seldom asked: most callers stay below the limit.
    if (seconds === 0 || this.#trusted.has(address)) return;
    const { perSecond } = this.#principals;
    throw tooMany(`${nameOf(principal)} sent more than ${perSecond} requests in a second`, {
      ...{ seconds, operation, remedy: 'Retry with backoff', setting: 'quotas.requestsPerSecond' },
    });
  }
}

/** Admits so many requests a second from each address, regardless of their sender; 0 means no limit. */
export function admitBySandbox(perSecond: number, trusted: RequestRatesOptions['trusted'], clock: Clock): Admit {
  const limiter = new RateLimiter(perSecond, clock);
  return ({ socket: { remoteAddress } }, operation) => {
    const seconds = limiter.tryTake(addressKey(remoteAddress));
    if (seconds === 0 || trusted.has(remoteAddress)) return undefined;
    return tooMany(`This sandbox sent more than ${perSecond} requests in a second`, {
      ...{ seconds, operation, remedy: 'Retry with backoff', setting: 'sandbox.requestsPerSecond' },
    });
  };
}
