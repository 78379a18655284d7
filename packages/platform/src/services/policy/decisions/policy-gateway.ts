import type { control } from '@agentplatform/contract';

/** A tool as policies see it. */
export interface PolicyTool {
  name: string;
  inputSchema: object;
  outputSchema?: object | undefined;
}

/** A gateway as policies see it: another object once anything of it is other. */
export interface PolicyGateway {
  arn: string;
  id: string;
  accountId: string;
  engineArn: string;
  mode: control.GatewayPolicyEngineMode;
  /** What callers of it are. */
  principalType: 'OAuthUser' | 'IamEntity';
  targets: readonly { name: string; tools: readonly PolicyTool[] }[];
  /** Whether requests of HTTP and to models come through it. */
  http: boolean;
}

/** The gateways that policies are about; the service of gateways gives them. */
export interface PolicyGateways {
  /** Undefined where there is none of that ARN. Without an engine: as it would be with that one. */
  find(arn: string, engineArn: string): Promise<PolicyGateway | undefined>;
}

/** The action of requests that call no tool. */
export const HTTP_ACTION = 'Http';
