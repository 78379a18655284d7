import { join } from 'node:path';
import {
  GetWorkloadAccessTokenCommand,
  GetWorkloadAccessTokenForJWTCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateWorkloadIdentityCommand,
  DeleteAgentRuntimeCommand,
  DeleteWorkloadIdentityCommand,
  GetWorkloadIdentityCommand,
  ListTagsForResourceCommand,
  paginateListWorkloadIdentities,
  UpdateAgentRuntimeCommand,
  UpdateWorkloadIdentityCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole } from '../support/iam.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
const TOKEN = /^[\w-]{100,}$/;
let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let agent: Awaited<ReturnType<typeof deployAgent>>;

beforeAll(async () => {
  provider = await startOidcServer();
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  agent = await deployAgent(platform, clients, { folder });
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

async function names(): Promise<string[]> {
  const found: string[] = [];
  for await (const page of paginateListWorkloadIdentities({ client: clients.control, pageSize: 1 }, {}))
    for (const { name = '' } of page.workloadIdentities ?? []) found.push(name);
  return found;
}

describe('workload identities, by the AWS SDK', () => {
  it('are made, read, changed, listed and deleted', async () => {
    const urls = ['https://app.example/back'];
    const name = 'of.a-caller_1';
    const made = await clients.control.send(
      new CreateWorkloadIdentityCommand({ name, allowedResourceOauth2ReturnUrls: urls, tags: { team: 'red' } }),
    );
    const { accountId, region } = platform.ready;
    const arn = `arn:aws:bedrock-agentcore:${region}:${accountId}:workload-identity-directory/default/workload-identity/${name}`;
    expect(made).toMatchObject({ name, workloadIdentityArn: arn, allowedResourceOauth2ReturnUrls: urls });
    const { tags } = await clients.control.send(new ListTagsForResourceCommand({ resourceArn: arn }));
    expect(tags).toEqual({ team: 'red' });
    const again = clients.control.send(new CreateWorkloadIdentityCommand({ name }));
    await expect(again).rejects.toMatchObject({ name: 'ConflictException' });
    const changed = await clients.control.send(
      new UpdateWorkloadIdentityCommand({ name, allowedResourceOauth2ReturnUrls: [...urls, 'myapp://back'] }),
    );
    const found = await clients.control.send(new GetWorkloadIdentityCommand({ name }));
    expect(found).toMatchObject({
      name,
      workloadIdentityArn: arn,
      allowedResourceOauth2ReturnUrls: [...urls, 'myapp://back'],
      createdTime: changed.createdTime,
      lastUpdatedTime: changed.lastUpdatedTime,
    });
    // On the wire it is in seconds.
    expect(found.createdTime?.getTime()).toBeGreaterThan(Date.UTC(2025, 0, 1));
    expect(found.createdTime?.getTime()).toBeLessThan(Date.UTC(2200, 0, 1));
    expect(await names()).toEqual(expect.arrayContaining([agent.id, name]));
    await clients.control.send(new DeleteWorkloadIdentityCommand({ name }));
    for (const gone of [new GetWorkloadIdentityCommand({ name }), new DeleteWorkloadIdentityCommand({ name })])
      await expect(clients.control.send(gone as GetWorkloadIdentityCommand)).rejects.toMatchObject({
        name: 'ResourceNotFoundException',
      });
  });

  it.each(['ab', 'a/b', 'with blank', 'x'.repeat(256), '../up'])('have no name such as %j', async (name) => {
    await expect(clients.control.send(new CreateWorkloadIdentityCommand({ name }))).rejects.toMatchObject({
      name: 'ValidationException',
    });
  });

  it('give tokens for themselves, for a user whom the caller may name, and for the user of a genuine JWT', async () => {
    const workloadName = 'elsewhere';
    await clients.control.send(new CreateWorkloadIdentityCommand({ name: workloadName }));
    const { data } = clients;
    const userToken = await provider.token();
    const given = [
      await data.send(new GetWorkloadAccessTokenCommand({ workloadName })),
      await data.send(new GetWorkloadAccessTokenForUserIdCommand({ workloadName, userId: 'ada' })),
      await data.send(new GetWorkloadAccessTokenForJWTCommand({ workloadName, userToken })),
    ].map(({ workloadAccessToken }) => workloadAccessToken);
    for (const token of given) expect(token).toMatch(TOKEN);
    expect(new Set(given).size).toBe(3);
    const altered = `${userToken.slice(0, -8)}AAAAAAAA`;
    const forged = data.send(new GetWorkloadAccessTokenForJWTCommand({ workloadName, userToken: altered }));
    await expect(forged).rejects.toMatchObject({ name: 'UnauthorizedException' });
    const none = data.send(new GetWorkloadAccessTokenCommand({ workloadName: 'nothing' }));
    await expect(none).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('let a policy say who asks for whose tokens', async () => {
    for (const name of ['open', 'closed']) await clients.control.send(new CreateWorkloadIdentityCommand({ name }));
    const { workloadIdentityArn } = await clients.control.send(new GetWorkloadIdentityCommand({ name: 'open' }));
    const credentials = await assumeNewRole(platform, 'for-ada', [
      {
        Effect: 'Allow',
        Action: 'bedrock-agentcore:GetWorkloadAccessTokenForUserId',
        Resource: workloadIdentityArn,
        Condition: { StringEquals: { 'bedrock-agentcore:userid': 'ada' } },
      },
    ]);
    const role = clientsOf(platform, { credentials });
    try {
      const ask = (workloadName: string, userId: string) =>
        role.data.send(new GetWorkloadAccessTokenForUserIdCommand({ workloadName, userId }));
      expect((await ask('open', 'ada')).workloadAccessToken).toMatch(TOKEN);
      for (const refused of [
        ask('open', 'bob'),
        ask('closed', 'ada'),
        role.data.send(new GetWorkloadAccessTokenCommand({ workloadName: 'open' })),
      ])
        await expect(refused).rejects.toMatchObject({ name: 'AccessDeniedException' });
    } finally {
      role.close();
    }
  });
});

describe("a runtime's own workload identity", () => {
  const headers = async (session: string, runtimeUserId?: string): Promise<Record<string, string>> =>
    JSON.parse(await invokeText(clients, agent.arn, session, { do: 'headers' }, { runtimeUserId }));

  it('is named by the runtime, gives no token to callers, and goes with it', async () => {
    const made = await deployAgent(platform, clients, { folder });
    const { workloadIdentityArn } = made.workloadIdentityDetails ?? {};
    const found = await clients.control.send(new GetWorkloadIdentityCommand({ name: made.id }));
    expect(found.workloadIdentityArn).toBe(workloadIdentityArn);
    const { roleArn, networkConfiguration, agentRuntimeArtifact } = made;
    const updated = await clients.control.send(
      new UpdateAgentRuntimeCommand({
        agentRuntimeId: made.id,
        roleArn,
        networkConfiguration,
        agentRuntimeArtifact,
      }),
    );
    expect(updated.workloadIdentityDetails).toEqual({ workloadIdentityArn });
    const asked = clients.data.send(new GetWorkloadAccessTokenCommand({ workloadName: made.id }));
    await expect(asked).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('is linked to'),
    });
    const deleted = clients.control.send(new DeleteWorkloadIdentityCommand({ name: made.id }));
    await expect(deleted).rejects.toMatchObject({ name: 'ValidationException' });
    await clients.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: made.id }));
    await expect.poll(names, { timeout: 30_000 }).not.toContain(made.id);
  });

  it('reaches the agent as a token by both names, another for each user of one session', async () => {
    const session = sessionId('workload');
    const first = await headers(session);
    expect(first.workloadaccesstoken).toMatch(TOKEN);
    expect(first['x-amz-bedrock-agentcore-identity-wat']).toBe(first.workloadaccesstoken);
    expect((await headers(session)).workloadaccesstoken).toBe(first.workloadaccesstoken);
    const ada = await headers(session, 'ada');
    const bob = await headers(session, 'bob');
    expect(new Set([first, ada, bob].map((one) => one.workloadaccesstoken)).size).toBe(3);
  });

  it('tells the agent the first address that its users may be sent back to, from the next request on', async () => {
    const session = sessionId('callback');
    const allow = (...allowedResourceOauth2ReturnUrls: string[]) =>
      clients.control.send(new UpdateWorkloadIdentityCommand({ name: agent.id, allowedResourceOauth2ReturnUrls }));
    expect(await headers(session)).not.toHaveProperty('oauth2callbackurl');
    await allow('https://app.example/zurück', 'https://app.example/back', 'myapp://back');
    // The first does not fit into a header.
    expect((await headers(session)).oauth2callbackurl).toBe('https://app.example/back');
    await allow();
    expect(await headers(session)).not.toHaveProperty('oauth2callbackurl');
  });

  it('cannot be spoken for by a caller: what he sends under those names does not arrive', async () => {
    const bearer = await deployAgent(platform, clients, {
      folder,
      authorizerConfiguration: {
        customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] },
      },
      requestHeaderConfiguration: { requestHeaderAllowlist: ['X-Tenant'] },
    });
    const forged = {
      WorkloadAccessToken: 'forged',
      'X-Amz-Bedrock-AgentCore-Identity-WAT': 'forged',
      OAuth2CallbackUrl: 'https://forged.example',
    };
    const answer = await fetch(`${platform.ready.endpoint}/runtimes/${encodeURIComponent(bearer.arn)}/invocations`, {
      method: 'POST',
      headers: { ...forged, 'X-Tenant': 'blue', authorization: `Bearer ${await provider.token()}` },
      body: '{"do":"headers"}',
    });
    const seen = (await answer.json()) as Record<string, string>;
    // A header does come through where the allowlist names it; these do not.
    expect(seen['x-tenant']).toBe('blue');
    expect(seen.workloadaccesstoken).toMatch(TOKEN);
    expect(seen['x-amz-bedrock-agentcore-identity-wat']).toBe(seen.workloadaccesstoken);
    expect(JSON.stringify(seen)).not.toContain('forged');
  });
});
