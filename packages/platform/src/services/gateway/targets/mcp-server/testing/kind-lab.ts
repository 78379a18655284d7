import type { control } from '@agentplatform/contract';
import { type Clock, systemClock } from '../../../../../kernel/clock.ts';
import { createOutbound } from '../../../../../kernel/outbound/index.ts';
import { ToldChanges } from '../../../../../kernel/storage/testing/told-changes.ts';
import type { Gateway } from '../../../gateways/gateway.ts';
import type { Credential } from '../../../outbound/credential.ts';
import { TargetGuard } from '../../../outbound/target-guard.ts';
import type { LiveTarget } from '../../target.ts';
import type { MadeTools, TargetRequest, ToolCaller } from '../../target-kind.ts';
import { BackendConnections } from '../backend-connections.ts';
import { McpServerKind, type McpServerKindDeps } from '../mcp-server-kind.ts';

const ACCOUNT = '111122223333';
const GATEWAY_ARN = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:gateway/lab-0123456789`;

const NOTHING: Credential = { headers: {}, query: [], secrets: [] };

/** A token as credential, in the header where tokens are. */
export function bearer(token: string): Credential {
  return { headers: { authorization: `Bearer ${token}` }, query: [], secrets: [token] };
}

export interface KindLabOptions {
  clock?: Clock;
  /** Networks that may be called although they are not public. */
  allowPrivate?: readonly string[];
  signing?: McpServerKindDeps['signing'];
}

/** Of a platform that is nowhere. */
const NOWHERE: McpServerKindDeps['signing'] = { ownPath: () => undefined, refusalOf: async () => undefined };

/** The kind of target on its own, with the real guard and the real connections; who calls has the credential that the test says. */
export function openKindLab({
  clock = systemClock,
  allowPrivate = ['127.0.0.0/8'],
  signing = NOWHERE,
}: KindLabOptions = {}) {
  const changes = new ToldChanges();
  const outbound = createOutbound({ allowPrivate, clock: systemClock });
  const connections = new BackendConnections({ outbound, clock, changes, version: '0.0.0' });
  let credential = NOTHING;
  const credentials = { of: async () => credential };
  const kind = new McpServerKind({
    ...{
      clock,
      connections,
      credentials,
      guard: new TargetGuard({ clock, changes: { subscribe: () => undefined } }),
      refusalOf: async () => undefined,
    },
    signing,
  });
  /** What is asked of a target, by a caller whose request brought these headers. */
  const request = (target: LiveTarget, more: Asked = {}): TargetRequest => {
    const { headers = {}, ...rest } = more;
    const caller: ToolCaller = {
      principal: { kind: 'anonymous', accountId: ACCOUNT, acceptedBy: GATEWAY_ARN, address: undefined },
      ...{ requestId: 'request', headers, query: new URLSearchParams() },
    };
    return { gateway, target, caller, messageId: 1, signal: new AbortController().signal, ...rest };
  };
  return {
    ...{ kind, changes, request },
    /** What callers show from now on. */
    show(shown: Credential): void {
      credential = shown;
    },
    connections,
    makeTools(target: LiveTarget, signal = new AbortController().signal): Promise<MadeTools> {
      return kind.makeTools({ gateway, target, definition: target.live, document: undefined, signal });
    },
    /** Calls a tool by its name. */
    call(target: LiveTarget, name: string, args: Record<string, unknown> = {}, more: Asked = {}) {
      const tool = {
        ...{ name, description: '', inputSchema: { type: 'object' as const } },
        hints: { readOnly: false, destructive: true, idempotent: false },
      };
      return kind.call({ ...request(target, more), tool, arguments: args });
    },
    async close(): Promise<void> {
      await connections.close();
      await outbound.close();
    },
  };
}

type Asked = Partial<TargetRequest> & { headers?: ToolCaller['headers'] };

export type KindLab = ReturnType<typeof openKindLab>;

export const gateway: Gateway = {
  ...{ arn: GATEWAY_ARN, accountId: ACCOUNT, id: 'lab-0123456789', name: 'lab', createdAt: 0, updatedAt: 0 },
  definition: { roleArn: `arn:aws:iam::${ACCOUNT}:role/lab`, protocolType: 'MCP', authorizerType: 'NONE' },
};

let made = 0;

/** A target that is that server. */
export function mcpTarget(
  endpoint: string,
  more: Partial<control.McpServerTargetConfiguration> & { headers?: string[] } = {},
): LiveTarget {
  const { headers, ...configuration } = more;
  const id = `T${String(++made).padStart(9, '0')}`;
  return {
    ...{ arn: `${GATEWAY_ARN}/target/${id}`, gatewayArn: GATEWAY_ARN, accountId: ACCOUNT, id, name: `target-${made}` },
    ...{ status: 'READY', statusReasons: [], revision: 1, createdAt: 0, updatedAt: 0 },
    live: {
      targetConfiguration: { mcp: { mcpServer: { endpoint, ...configuration } } },
      credentialProviderConfigurations: [],
      ...(headers && { metadataConfiguration: { allowedRequestHeaders: headers } }),
    },
  };
}
