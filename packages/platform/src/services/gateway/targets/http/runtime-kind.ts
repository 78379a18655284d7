import { type control, errors } from '@agentplatform/contract';
import type { Dispatcher } from 'undici';
import type { UpstreamResponse } from '../../../../kernel/http/index.ts';
import { traceHeaders } from '../../../../kernel/telemetry/index.ts';
import { type IdentityPort, WORKLOAD_TOKEN_HEADER } from '../../../identity/index.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import type { CredentialRules } from '../../outbound/credential-rules.ts';
import type { TargetCredentials } from '../../outbound/target-credentials.ts';
import { answeredHeaders, type BackendRequests, sentHeaders, type TrafficRequest } from '../../traffic/index.ts';
import { propagated } from '../propagated.ts';
import type { LiveTarget, TargetDefinition } from '../target.ts';
import type { TargetKind } from '../target-kind.ts';
import { allowedBack } from './allowed-back.ts';
import { checkHttpTarget } from './check-http-target.ts';
import { NO_TOOLS } from './no-tools.ts';
import { parameter, parametersOf, searchOf } from './query.ts';

export interface RuntimeKindDeps {
  requests: Pick<BackendRequests, 'send'>;
  credentials: Pick<TargetCredentials, 'of'>;
  identity: Pick<IdentityPort, 'issueToken'>;
  /** Where this very server is reached by itself. */
  ownEndpoint(): string;
  /** The way there. */
  ownDispatcher: Dispatcher;
  region: string;
}

const FIELD = 'targetConfiguration.http.agentcoreRuntime';
const INVOCATIONS = '/invocations';
/** As the model has it. */
const DEFAULT_QUALIFIER = 'DEFAULT';
/** Who the user is says only who may say so: a caller in his own name (`CALLER_IAM_CREDENTIALS`). */
const USER = 'x-amzn-bedrock-agentcore-runtime-user-id';
const PROTOCOL =
  /^(?:mcp-|a2a-|x-amzn-bedrock-agentcore-runtime-(?:session-id$|custom-)|x-amzn-errortype$|x-amzn-requestid$)/;

/** Targets that are runtimes of this platform (spec: Target), each by one of its endpoints: what is asked there goes through all that invocations go through. */
export class RuntimeKind implements TargetKind {
  readonly type = 'AGENTCORE_RUNTIME';
  readonly credentials: CredentialRules = {
    types: ['GATEWAY_IAM_ROLE', 'CALLER_IAM_CREDENTIALS', 'JWT_PASSTHROUGH', 'OAUTH'],
    needed: true,
    service: 'either',
  };
  readonly makeTools = NO_TOOLS.makeTools;
  readonly call = NO_TOOLS.call;
  readonly #deps: RuntimeKindDeps;

  constructor(deps: RuntimeKindDeps) {
    this.#deps = deps;
  }

  check(definition: TargetDefinition, gateway: Gateway): void {
    checkHttpTarget(gateway);
    const [, , , ofRegion, ofAccount] = configurationOf(definition).arn.split(':');
    if (ofRegion !== this.#deps.region || ofAccount !== gateway.accountId)
      throw errors.invalidField(`${FIELD}.arn`, `must be a runtime of this account in ${this.#deps.region}`);
    const service = definition.credentialProviderConfigurations[0]?.credentialProvider?.iamCredentialProvider?.service;
    if (service !== undefined && service !== 'bedrock-agentcore')
      throw errors.invalidField(
        'credentialProviderConfigurations',
        'must sign for bedrock-agentcore: a runtime takes no other',
      );
  }

  async pass(request: TrafficRequest, target: LiveTarget): Promise<UpstreamResponse> {
    const { passing, caller, open, path } = request;
    const { principal, signal, req, span } = passing;
    const { metadataConfiguration, credentialProviderConfigurations } = target.live;
    const [configuration] = credentialProviderConfigurations;
    const credential = await this.#deps.credentials.of(target, target.live, open.gateway, { principal, signal });
    const asCaller = configuration?.credentialProviderType === 'CALLER_IAM_CREDENTIALS';
    const user = asCaller ? req.headers[USER] : undefined;
    const headers = {
      ...propagated(metadataConfiguration, caller).headers,
      ...sentHeaders(passing, PROTOCOL),
      ...(typeof user === 'string' && { [USER]: user }),
      ...(span.context && Object.fromEntries(pairs(traceHeaders(span.context)))),
      ...credential.headers,
      // It is signed with the rest, and goes on as it comes.
      ...(credential.sign && { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }),
      // A runtime may take tokens of users from some gateways alone.
      ...(!credential.sign && { [WORKLOAD_TOKEN_HEADER]: this.#workloadToken(open.gateway) }),
    };
    const url = this.#urlOf(target.live, path, req.url ?? '');
    const unsigned = { method: req.method ?? 'GET', url, headers };
    const signed = await credential.sign?.({ ...unsigned, service: 'bedrock-agentcore' });
    // Nothing goes to anybody else, who could repeat it.
    const sent = { ...unsigned, ...signed, body: request.body, secrets: [] };
    const answer = await this.#deps.requests.send(sent, target, passing, this.#deps.ownDispatcher);
    return {
      ...answer,
      headers: { ...allowedBack(target.live, answer.headers), ...answeredHeaders(answer.headers, PROTOCOL) },
    };
  }

  /** Says which gateway asks, and for no user. */
  #workloadToken({ accountId, id: workload }: Gateway): string {
    return this.#deps.identity.issueToken({ accountId, workload, user: undefined }).token;
  }

  /** Throws ResourceNotFoundException for what a runtime has no path of. */
  #urlOf(definition: TargetDefinition, path: string, asked: string): URL {
    if (path !== INVOCATIONS && !path.startsWith(`${INVOCATIONS}/`))
      throw errors.resourceNotFound(`A runtime behind a gateway is asked at ${INVOCATIONS} and below.`);
    const { arn, qualifier = DEFAULT_QUALIFIER } = configurationOf(definition);
    const allowed = definition.metadataConfiguration?.allowedQueryParameters ?? [];
    const more = parametersOf(asked).filter(({ name }) => name !== 'qualifier' && allowed.includes(name));
    const url = new URL(`${this.#deps.ownEndpoint()}/runtimes/${encodeURIComponent(arn)}${path}`);
    url.search = searchOf([parameter('qualifier', qualifier), ...more]);
    return url;
  }
}

function* pairs(flat: readonly string[]): Generator<[string, string]> {
  for (let i = 0; i + 1 < flat.length; i += 2) yield [flat[i] ?? '', flat[i + 1] ?? ''];
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.RuntimeTargetConfiguration {
  const found = targetConfiguration.http?.agentcoreRuntime;
  if (!found) throw new Error('a target that is no runtime');
  return found;
}
