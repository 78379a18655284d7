import * as oauth from 'oauth4webapi';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import { ProviderError } from './provider-error.ts';
import { asProviderError, type OauthClient } from './token-endpoint.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;

/** Revocation endpoints of providers (RFC 7009), asked over the guarded way out. */
export class RevocationEndpoint {
  readonly #outbound: Pick<Outbound, 'fetch'>;

  constructor({ outbound }: { outbound: Pick<Outbound, 'fetch'> }) {
    this.#outbound = outbound;
  }

  /** Takes a token back at the server, which has such an endpoint. Rejects with `ProviderError`. */
  async revoke(at: OauthClient, token: string, hint: 'refresh_token' | 'access_token'): Promise<void> {
    const { server, client, authentication } = at;
    try {
      const answer = await oauth.revocationRequest(server, client, authentication, token, {
        additionalParameters: { token_type_hint: hint },
        [oauth.customFetch]: (url, options) => this.#send(url, options, at.certificateAuthority),
        // Which addresses are called is the guard's to say, and the operator's.
        [oauth.allowInsecureRequests]: true,
      });
      await oauth.processRevocationResponse(answer);
    } catch (error) {
      // Such tokens end by themselves there (section 2.2.1).
      if (error instanceof oauth.ResponseBodyError && error.error === 'unsupported_token_type') return;
      throw asProviderError(error, server.issuer, [token, at.secret?.reveal() ?? '']);
    }
  }

  async #send(
    url: string,
    { method, headers, body }: oauth.CustomFetchOptions<string, unknown>,
    ca: string | undefined,
  ): Promise<Response> {
    const answer = await this.#outbound.fetch(url, {
      ...{ method, headers: { ...headers, 'user-agent': 'agentplatform' }, body: String(body) },
      ...{ timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, redirects: 0, ca },
    });
    const text = await answer.text();
    if (answer.status >= 500 || answer.status === 429)
      throw new ProviderError('unreachable', `${new URL(url).host} answers ${answer.status}.`);
    // Nothing is said in an answer of success.
    if (answer.status >= 200 && answer.status < 300) return new Response(null, { status: 200 });
    return new Response(text, { status: answer.status, headers: { 'content-type': 'application/json' } });
  }
}
