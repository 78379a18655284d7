import { CreateGatewayCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { type InputRequiredResult, inputRequired } from '@modelcontextprotocol/server';
import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import {
  startModernBackend,
  startSessionBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import {
  modernServer,
  sessionServer,
  type ToolRun,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { clientsOf } from './clients.ts';
import { addMcpServer } from './gateway.ts';
import { newRole } from './iam.ts';
import { startTestPlatform, type TestPlatform } from './platform-process.ts';

const AUDIENCE = 'urn:flows';
const TOOLS = ['count', 'form', 'link', 'wait'].map((name) => ({
  ...{ name, description: `Does ${name}.`, inputSchema: { type: 'object' } },
}));
/** Of tools, as gateways have them. */
export const PAGE = 1_000;
const MORE = 10;
/** On the second page. */
export const REST = MORE + 2 * TOOLS.length;
export const SCHEMA = { type: 'object' as const, properties: { name: { type: 'string' as const } } };
export const LINK = 'https://sign-in.example/now';

/** A call that waits until it is cancelled. */
export interface Wait {
  begun: Promise<void>;
  ended: Promise<void>;
}

/** Gateways with sessions, in front of servers of both eras whose tools ask, tell and wait. */
export interface FlowGateways {
  platform: TestPlatform;
  /** Of the gateway that takes signatures, and of that which takes tokens. */
  urls: { signed: string; 'by token': string };
  /** A token that the second takes. */
  token(): Promise<string>;
  /** The next call of `wait`. */
  nextWait(): Wait;
  close(): Promise<void>;
}

export async function startFlowGateways(): Promise<FlowGateways> {
  const provider = await startOidcServer();
  const platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  const clients = clientsOf(platform);
  const allowed = [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }];
  const roleArn = await newRole(platform, 'flows', allowed);
  const waits: { begin(): void; end(): void }[] = [];
  const run = (asked: ToolRun): Promise<object | InputRequiredResult> => runTool(asked, () => waits.shift());
  const newer = await startModernBackend(() => modernServer({ tools: TOOLS, run }));
  const older = await startSessionBackend(() => sessionServer({ tools: TOOLS, run }));
  const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: [AUDIENCE] };
  const open = async (how: 'signed' | 'token'): Promise<string> => {
    const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
      new CreateGatewayCommand({
        ...{ name: `flows-${how}`, roleArn, protocolType: 'MCP' },
        ...(how === 'signed'
          ? { authorizerType: 'AWS_IAM' }
          : { authorizerType: 'CUSTOM_JWT', authorizerConfiguration: { customJWTAuthorizer } }),
        protocolConfiguration: { mcp: { sessionConfiguration: { sessionTimeoutInSeconds: 900 } } },
      }),
    );
    await addMcpServer(clients, gatewayId, 'newer', { endpoint: newer.url });
    await addMcpServer(clients, gatewayId, 'older', { endpoint: older.url });
    const tools = Array.from({ length: PAGE + MORE }, (_, i) => ({ ...TOOLS[0], name: `tool${i}` }));
    const mcpToolSchema = { inlinePayload: JSON.stringify({ tools }) };
    await addMcpServer(clients, gatewayId, 'many', { endpoint: newer.url, mcpToolSchema });
    return gatewayUrl;
  };
  return {
    platform,
    urls: { signed: await open('signed'), 'by token': await open('token') },
    token: () => provider.token({ resource: AUDIENCE }),
    nextWait() {
      const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      waits.push({ begin: begun.resolve, end: ended.resolve });
      return { begun: begun.promise, ended: ended.promise };
    },
    async close() {
      clients.close();
      await platform.dispose();
      await Promise.all([provider.close(), newer.close(), older.close()]);
    },
  };
}

async function runTool(
  { name, signal, progress, input, ask }: ToolRun,
  nextWait: () => { begin(): void; end(): void } | undefined,
): Promise<object | InputRequiredResult> {
  if (name === 'count') for (const one of [1, 2, 3]) await progress(one);
  if (name === 'wait') {
    const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const wait = nextWait();
    wait?.begin();
    await progress(1);
    await over;
    wait?.end();
  }
  if (name !== 'form' && name !== 'link') return { content: [{ type: 'text', text: `did ${name}` }] };
  const asking =
    name === 'form'
      ? { mode: 'form', message: 'Who?', requestedSchema: SCHEMA }
      : { mode: 'url', message: 'Sign in.', url: LINK, elicitationId: 'sign-in' };
  const said = (text: unknown): object => ({ content: [{ type: 'text', text: JSON.stringify(text) }] });
  if (ask) return said(await ask({ method: 'elicitation/create', params: asking }, ElicitResultSchema));
  if (input?.inputResponses) return said(input.inputResponses);
  const request =
    name === 'form'
      ? inputRequired.elicit({ message: 'Who?', requestedSchema: SCHEMA })
      : inputRequired.elicitUrl({ message: 'Sign in.', url: LINK });
  return inputRequired({ inputRequests: { who: request } });
}
