import { errors } from '@agentplatform/contract';
import type { Authenticator, SignedRequest } from '../auth/index.ts';
import { PEER_HEADER, type PeerTokens } from './peer-token.ts';

/** Accepts what another server of this database forwards, and leaves every other request to `inner`. */
export function peerAuthenticator(inner: Authenticator, tokens: PeerTokens): Authenticator {
  return {
    authenticate(request) {
      const token = peerTokenOf(request);
      return token === undefined ? inner.authenticate(request) : forwarded(request, token);
    },
  };

  async function forwarded({ method, rawUrl }: SignedRequest, token: string) {
    const claims = tokens.verify(token, { method, url: rawUrl });
    if (!claims?.principal) throw errors.accessDenied('The request was not forwarded by a server of this platform.');
    // The other server has held the body to its signature.
    return { principal: claims.principal, body: { kind: 'unsigned' as const } };
  }
}

function peerTokenOf({ rawHeaders }: SignedRequest): string | undefined {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() === PEER_HEADER) return rawHeaders[i + 1];
  return undefined;
}
