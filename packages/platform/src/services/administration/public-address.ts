import type { Outbound } from '../../kernel/outbound/index.ts';
import type { PlatformProof } from './platform-proof.ts';

/** Where browsers reach the platform, and what is wrong with that. */
export interface PublicAddress {
  address: string;
  problem?: string;
}

export interface PublicAddressDeps {
  /** `publicUrl` of the configuration. */
  publicUrl: string | undefined;
  /** Where the platform listens, and is reached. */
  host: string;
  endpoint: string;
  /** Calls what the configuration names. */
  outbound: Pick<Outbound, 'fetch'>;
  proof: PlatformProof;
}

const TIMEOUT_MS = 5_000;

/** Asks the platform by the address that links begin with, as a browser would. */
export async function checkPublicAddress(deps: PublicAddressDeps): Promise<PublicAddress> {
  const { publicUrl, host, endpoint, outbound, proof } = deps;
  if (publicUrl === undefined)
    return LOOPBACK.test(host)
      ? { address: endpoint }
      : {
          address: endpoint,
          problem:
            'publicUrl is not set: links to consent pages begin with an address that browsers elsewhere may not reach',
        };
  const problem = (what: string): PublicAddress => ({ address: publicUrl, problem: `publicUrl ${what}` });
  const nonce = proof.nonce();
  try {
    const answer = await outbound.fetch(`${publicUrl.replace(/\/$/, '')}/healthz?nonce=${nonce}`, {
      timeoutMs: TIMEOUT_MS,
      maxBytes: 4096,
      redirects: 0,
    });
    const text = await answer.text();
    if (answer.status !== 200 || !text.includes('"ok"')) return problem(`leads elsewhere: it answers ${answer.status}`);
    return text.includes(`"${proof.of(nonce)}"`)
      ? { address: publicUrl }
      : problem('leads to another platform: it does not have the master key of this one');
  } catch (error) {
    return problem(`cannot be reached from here: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const LOOPBACK = /^(?:127\.|::1$)/;
