import { type control, errors } from '@agentplatform/contract';
import type { UpstreamResponse } from '../../../../kernel/http/index.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import type { BackendSigning } from '../../outbound/backend-signing.ts';
import type { Credential } from '../../outbound/credential.ts';
import type { CredentialRules } from '../../outbound/credential-rules.ts';
import type { TargetCredentials } from '../../outbound/target-credentials.ts';
import { checkStickiness } from '../../rules/index.ts';
import { answeredHeaders, type BackendRequests, sentHeaders, type TrafficRequest } from '../../traffic/index.ts';
import { propagated } from '../propagated.ts';
import type { LiveTarget, TargetDefinition } from '../target.ts';
import type { TargetKind } from '../target-kind.ts';
import { allowedBack } from './allowed-back.ts';
import { checkHttpTarget } from './check-http-target.ts';
import { NO_TOOLS } from './no-tools.ts';
import { parameter, parametersOf, searchOf } from './query.ts';

export interface PassthroughKindDeps {
  requests: Pick<BackendRequests, 'send'>;
  credentials: Pick<TargetCredentials, 'of'>;
  signing: Pick<BackendSigning, 'refusalOf'>;
  refusalOf(url: string): Promise<string | undefined>;
}

const FIELD = 'targetConfiguration.http.passthrough';
/** Of what is sent, with its query. */
const LONGEST_URL = 8_192;
/** Of a body that is signed: it is read whole before. */
const MAX_SIGNED_BYTES = 10 * 1024 * 1024;

/** What each protocol has in headers of its own. */
const PROTOCOL_HEADERS: Readonly<Record<control.PassthroughProtocolType, RegExp | undefined>> = {
  MCP: /^mcp-/,
  A2A: /^a2a-/,
  INFERENCE: /^(?:anthropic|openai|x-stainless|x-goog-api-client|x-request-id|request-id)/,
  CUSTOM: undefined,
};

/** Targets that are any server of HTTP (spec: Target): requests go on as they come, with the credential of the target. */
export class PassthroughKind implements TargetKind {
  readonly type = 'PASSTHROUGH';
  readonly credentials: CredentialRules = {
    types: ['API_KEY', 'OAUTH', 'GATEWAY_IAM_ROLE', 'JWT_PASSTHROUGH'],
    service: 'named',
  };
  readonly makeTools = NO_TOOLS.makeTools;
  readonly call = NO_TOOLS.call;
  readonly #deps: PassthroughKindDeps;

  constructor(deps: PassthroughKindDeps) {
    this.#deps = deps;
  }

  async check(definition: TargetDefinition, gateway: Gateway): Promise<void> {
    checkHttpTarget(gateway);
    const { endpoint, stickinessConfiguration } = configurationOf(definition);
    const refusal = await this.#deps.refusalOf(endpoint);
    if (refusal) throw errors.invalidField(`${FIELD}.endpoint`, refusal);
    if (/[?#]/.test(endpoint))
      throw errors.invalidField(`${FIELD}.endpoint`, 'must have no query and no fragment; use staticQueryParameters');
    if (stickinessConfiguration) checkStickiness(stickinessConfiguration, `${FIELD}.stickinessConfiguration`);
    const [configuration] = definition.credentialProviderConfigurations;
    if (configuration?.credentialProviderType !== 'GATEWAY_IAM_ROLE') return;
    const unsigned = await this.#deps.signing.refusalOf(gateway, endpoint);
    if (unsigned !== undefined) throw errors.invalidField('credentialProviderConfigurations', unsigned);
  }

  async pass(request: TrafficRequest, target: LiveTarget): Promise<UpstreamResponse> {
    const { passing, caller, open } = request;
    const { principal, signal, req } = passing;
    const configuration = configurationOf(target.live);
    const credential = await this.#deps.credentials.of(target, target.live, open.gateway, { principal, signal });
    const protocol = PROTOCOL_HEADERS[configuration.protocolType];
    const url = urlOf(configuration, request, target.live.metadataConfiguration, credential);
    const headers = {
      ...propagated(target.live.metadataConfiguration, caller).headers,
      ...sentHeaders(passing, protocol),
      // What is encoded cannot be looked through.
      ...(credential.secrets.length > 0 && { 'accept-encoding': 'identity' }),
      ...credential.headers,
    };
    const body = credential.sign ? await request.whole(MAX_SIGNED_BYTES) : request.body;
    const unsigned = { method: req.method ?? 'GET', url, headers };
    const signed = await credential.sign?.({ ...unsigned, ...(body instanceof Uint8Array && { body }) });
    const secrets = [...credential.secrets, ...(signed ? [signed.signature] : [])];
    const sent = { ...unsigned, ...signed, body, secrets };
    const answer = await this.#deps.requests.send(sent, target, passing);
    return {
      ...answer,
      headers: { ...allowedBack(target.live, answer.headers), ...answeredHeaders(answer.headers, protocol) },
    };
  }
}

/** Throws ValidationException for one that is too long. */
function urlOf(
  {
    endpoint,
    staticQueryParameters = {},
    staticQueryParameterConflictResolution = 'CLIENT_OVERRIDE',
  }: control.PassthroughTargetConfiguration,
  { path, passing: { req } }: TrafficRequest,
  { allowedQueryParameters: allowed }: control.MetadataConfiguration = {},
  credential: Credential,
): URL {
  const fixed = Object.entries(staticQueryParameters).map(([name, value]) => parameter(name, value));
  const own = credential.query.map(([name, value]) => parameter(name, value));
  const isFixed = (name: string): boolean => Object.hasOwn(staticQueryParameters, name);
  const asked = parametersOf(req.url ?? '')
    .filter(({ name }) =>
      isFixed(name) ? staticQueryParameterConflictResolution === 'CLIENT_OVERRIDE' : (allowed?.includes(name) ?? true),
    )
    .filter(({ name }) => !own.some((one) => one.name === name));
  const rest = fixed.filter((one) => !asked.some(({ name }) => name === one.name));
  const url = new URL(`${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}${path}`);
  url.search = searchOf([...asked, ...rest, ...own]);
  if (url.href.length > LONGEST_URL)
    throw errors.validation(`The address of the request to the target would have more than ${LONGEST_URL} characters.`);
  return url;
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.PassthroughTargetConfiguration {
  const found = targetConfiguration.http?.passthrough;
  if (!found) throw new Error('a target that is not a passthrough');
  return found;
}
