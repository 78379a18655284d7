import { type control, errors, matchRoute } from '@agentplatform/contract';
import type { UpstreamResponse } from '../../../../kernel/http/index.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import type { CredentialRules } from '../../outbound/credential-rules.ts';
import type { TrafficRequest } from '../../traffic/index.ts';
import type { LiveTarget, TargetDefinition } from '../target.ts';
import type { TargetKind } from '../target-kind.ts';
import { checkHttpTarget } from './check-http-target.ts';
import { NO_TOOLS } from './no-tools.ts';
import type { OwnRequests } from './own-requests.ts';
import { parametersOf, searchOf } from './query.ts';

export interface HttpConnectorKindDeps {
  own: Pick<OwnRequests, 'send'>;
}

const FIELD = 'targetConfiguration.http.connector';
const MEMORY = 'agentcore-memory';
/** Of Memory, those that say in one request whom they are about. */
const OPERATIONS = new Set([
  ...['CreateEvent', 'GetEvent', 'ListEvents', 'DeleteEvent', 'ListActors', 'ListSessions'],
  ...['RetrieveMemoryRecords', 'ListMemoryRecords', 'GetMemoryRecord', 'DeleteMemoryRecord'],
  ...['ListMemoryExtractionJobs', 'StartMemoryExtractionJob'],
]);
const PROTOCOL = /^x-amzn-(?:errortype|requestid)$/;

/** Targets that are one memory of this platform, asked by the paths of its own operations: also by who brings a token and signs nothing. */
export class HttpConnectorKind implements TargetKind {
  readonly type = 'CONNECTOR';
  readonly credentials: CredentialRules = {
    ...{ types: ['GATEWAY_IAM_ROLE', 'CALLER_IAM_CREDENTIALS'], needed: true, service: 'known' },
  };
  readonly makeTools = NO_TOOLS.makeTools;
  readonly call = NO_TOOLS.call;
  readonly #deps: HttpConnectorKindDeps;

  constructor(deps: HttpConnectorKindDeps) {
    this.#deps = deps;
  }

  check(definition: TargetDefinition, gateway: Gateway): void {
    checkHttpTarget(gateway);
    const { source, parameters = {} } = configurationOf(definition);
    if (source.connectorId !== MEMORY)
      throw errors.invalidField(
        `${FIELD}.source.connectorId`,
        `names no connector: ${source.connectorId}; there is ${MEMORY}`,
      );
    const { memoryId, ...others } = parameters;
    if (memoryId === undefined) throw errors.invalidField(`${FIELD}.parameters`, 'must have memoryId');
    const [other] = Object.keys(others);
    if (other !== undefined)
      throw errors.invalidField(`${FIELD}.parameters`, `must have memoryId alone, and no ${other}`);
  }

  async pass(request: TrafficRequest, target: LiveTarget): Promise<UpstreamResponse> {
    const { path, passing } = request;
    const { memoryId } = configurationOf(target.live).parameters ?? {};
    const found = matchRoute(passing.req.method ?? '', path);
    if (!found || !OPERATIONS.has(found.operation) || found.labels.memoryId !== memoryId)
      throw errors.resourceNotFound(
        `The target ${target.name} is asked for operations on its memory, at /memories/${memoryId}/… .`,
        { remedy: `It has ${[...OPERATIONS].join(', ')}.` },
      );
    return this.#deps.own.send(request, target, {
      ...{ path: `${path}${searchOf(parametersOf(passing.req.url ?? ''))}`, protocol: PROTOCOL },
    });
  }
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.HttpConnectorTargetConfiguration {
  const found = targetConfiguration.http?.connector;
  if (!found) throw new Error('a target that is not a connector of HTTP');
  return found;
}
