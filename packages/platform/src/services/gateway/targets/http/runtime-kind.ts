import { type control, errors } from '@agentplatform/contract';
import type { UpstreamResponse } from '../../../../kernel/http/index.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import type { CredentialRules } from '../../outbound/credential-rules.ts';
import type { PolicyCallers } from '../../policy/index.ts';
import type { TrafficRequest } from '../../traffic/index.ts';
import type { LiveTarget, TargetDefinition } from '../target.ts';
import type { TargetKind } from '../target-kind.ts';
import { checkHttpTarget } from './check-http-target.ts';
import { NO_TOOLS } from './no-tools.ts';
import type { OwnRequests } from './own-requests.ts';
import { parameter, parametersOf, searchOf } from './query.ts';

export interface RuntimeKindDeps {
  own: Pick<OwnRequests, 'send'>;
  carried: Pick<PolicyCallers, 'headersFor'>;
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
    const { req } = request.passing;
    const [configuration] = target.live.credentialProviderConfigurations;
    const asCaller = configuration?.credentialProviderType === 'CALLER_IAM_CREDENTIALS';
    const user = asCaller ? req.headers[USER] : undefined;
    return this.#deps.own.send(request, target, {
      ...{ path: pathOf(target.live, request.path, req.url ?? ''), protocol: PROTOCOL },
      headers: {
        ...(typeof user === 'string' && { [USER]: user }),
        ...(await this.#deps.carried.headersFor(request.open.gateway, request.caller)),
      },
    });
  }
}

/** Throws ResourceNotFoundException for what a runtime has no path of. */
function pathOf(definition: TargetDefinition, path: string, asked: string): string {
  if (path !== INVOCATIONS && !path.startsWith(`${INVOCATIONS}/`))
    throw errors.resourceNotFound(`A runtime behind a gateway is asked at ${INVOCATIONS} and below.`);
  const { arn, qualifier = DEFAULT_QUALIFIER } = configurationOf(definition);
  const allowed = definition.metadataConfiguration?.allowedQueryParameters ?? [];
  const more = parametersOf(asked).filter(({ name }) => name !== 'qualifier' && allowed.includes(name));
  return `/runtimes/${encodeURIComponent(arn)}${path}${searchOf([parameter('qualifier', qualifier), ...more])}`;
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.RuntimeTargetConfiguration {
  const found = targetConfiguration.http?.agentcoreRuntime;
  if (!found) throw new Error('a target that is not a runtime');
  return found;
}
