import type { Dispatcher } from 'undici';
import type { UpstreamResponse } from '../../../../kernel/http/index.ts';
import { traceHeaders } from '../../../../kernel/telemetry/index.ts';
import type { IdentityPort } from '../../../identity/index.ts';
import type { TargetCredentials } from '../../outbound/target-credentials.ts';
import { answeredHeaders, type BackendRequests, sentHeaders, type TrafficRequest } from '../../traffic/index.ts';
import { propagated } from '../propagated.ts';
import type { LiveTarget } from '../target.ts';
import { allowedBack } from './allowed-back.ts';

export interface OwnRequestsDeps {
  requests: Pick<BackendRequests, 'send'>;
  credentials: Pick<TargetCredentials, 'of'>;
  identity: Pick<IdentityPort, 'headersOf'>;
  /** Where this very server is reached by itself. */
  ownEndpoint(): string;
  /** The way there. */
  ownDispatcher: Dispatcher;
}

/** The destination of a gateway's request on this platform. */
export interface OwnRequest {
  /** Path and query. */
  path: string;
  /** Names of headers that go on beside those of content, both ways. */
  protocol: RegExp;
  headers?: Readonly<Record<string, string>>;
}

/** Sends requests to parts of this platform in the name of a target's credential: they go through all that requests from outside go through. */
export class OwnRequests {
  readonly #deps: OwnRequestsDeps;

  constructor(deps: OwnRequestsDeps) {
    this.#deps = deps;
  }

  /** Rejects as `TargetKind.pass`. */
  async send(
    request: TrafficRequest,
    target: LiveTarget,
    { path, protocol, headers: more = {} }: OwnRequest,
  ): Promise<UpstreamResponse> {
    const { passing, caller, open } = request;
    const { principal, signal, req, span } = passing;
    const credential = await this.#deps.credentials.of(target, target.live, open.gateway, { principal, signal });
    const headers = {
      ...propagated(target.live.metadataConfiguration, caller).headers,
      ...sentHeaders(passing, protocol),
      ...more,
      ...(span.context && Object.fromEntries(pairs(traceHeaders(span.context)))),
      ...credential.headers,
      // It is signed with the rest, and goes on as it comes.
      ...(credential.sign && { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }),
      // An agent may accept tokens of users from certain gateways only, so the request names the gateway.
      ...(!credential.sign && this.#deps.identity.headersOf(open.gateway.accountId, open.gateway.id)),
    };
    const unsigned = { method: req.method ?? 'GET', url: new URL(`${this.#deps.ownEndpoint()}${path}`), headers };
    const signed = await credential.sign?.({ ...unsigned, service: 'bedrock-agentcore' });
    // Nothing goes to anybody else, who could repeat it.
    const sent = { ...unsigned, ...signed, body: request.body, secrets: [] };
    const answer = await this.#deps.requests.send(sent, target, passing, this.#deps.ownDispatcher);
    return {
      ...answer,
      headers: { ...allowedBack(target.live, answer.headers), ...answeredHeaders(answer.headers, protocol) },
    };
  }
}

function* pairs(flat: readonly string[]): Generator<[string, string]> {
  for (let i = 0; i + 1 < flat.length; i += 2) yield [flat[i] ?? '', flat[i + 1] ?? ''];
}
