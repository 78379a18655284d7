import { describe, expect, it } from 'vitest';
import type { Iam } from '../../../kernel/auth/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { BackendSigning } from '../outbound/backend-signing.ts';
import { NO_CREDENTIAL } from '../outbound/credential.ts';
import { TargetCredentials } from '../outbound/target-credentials.ts';
import { ConnectorKind } from './connectors/index.ts';
import { storedTarget } from './target.ts';
import type { ToolCall } from './target-kind.ts';
import { memoriesOf } from './target-memories.ts';

const HOME = 'arn:aws:bedrock-agentcore:us-east-1:111122223333';
const ID = 'notes-a1B2c3D4e5';
const MEMORY = `${HOME}:memory/${ID}`;
const gateway = { arn: `${HOME}:gateway/one-0123456789`, definition: { roleArn: 'role' } } as Gateway;
const source = { connectorId: 'agentcore-memory' };
const connectors = {
  'a tool': {
    mcp: { connector: { source, configurations: [{ name: 'listSessions', parameterValues: { memoryId: ID } }] } },
  },
  'an address of HTTP': { http: { connector: { source, parameters: { memoryId: ID } } } },
};

/** A row as it is in the database; without `given` as it was before memories were given. */
function row(targetConfiguration: object, more: { given?: string[] } = {}) {
  const credentialProviderConfigurations = [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }];
  const live = { targetConfiguration, credentialProviderConfigurations, ...more };
  const found = storedTarget.parse({ status: 'READY', statusReasons: [], revision: 1, live }).live;
  if (!found) throw new Error('no definition');
  return found;
}

describe.each(Object.entries(connectors))('a target that makes of a memory %s', (_, configuration) => {
  it('has what it was given, and one of before what it names', () => {
    expect(memoriesOf(row(configuration), gateway)).toEqual([MEMORY]);
    expect(memoriesOf(row(configuration, { given: [] }), gateway)).toEqual([]);
    const other = `${HOME}:memory/other-a1B2c3D4e5`;
    expect(memoriesOf(row(configuration, { given: [other] }), gateway)).toEqual([other]);
  });

  it('signs with these in the name of the gateway’s role', async () => {
    const signed: unknown[] = [];
    const asRole: BackendSigning['asRole'] = async (_gateway, _scope, given) => {
      signed.push(given);
      return NO_CREDENTIAL;
    };
    const deps = { signing: { asRole } } as unknown as ConstructorParameters<typeof TargetCredentials>[0];
    const signal = new AbortController().signal;
    for (const definition of [row(configuration), row(configuration, { given: [] })])
      await new TargetCredentials(deps).of({ name: 't' }, definition, gateway, { principal: undefined, signal });
    expect(signed).toEqual([[MEMORY], []]);
  });
});

it('a tool of a connector calls with these in the name of the gateway’s role', async () => {
  const issued: unknown[] = [];
  const issueRoleCredentials: Iam['issueRoleCredentials'] = ({ given }) => {
    issued.push(given);
    throw new Error('the role trusts nobody');
  };
  const deps = { roles: { issueRoleCredentials } } as unknown as ConstructorParameters<typeof ConnectorKind>[0];
  const tool = { name: 'listSessions', inputSchema: { type: 'object' } };
  for (const live of [row(connectors['a tool']), row(connectors['a tool'], { given: [] })]) {
    const call = { gateway, target: { live }, tool, arguments: {}, caller: { requestId: 'r' } } as unknown as ToolCall;
    await expect(new ConnectorKind(deps).call(call)).rejects.toThrow('trusts nobody');
  }
  expect(issued).toEqual([[MEMORY], []]);
});
