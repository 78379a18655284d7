import { join } from 'node:path';
import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateAgentRuntimeCommand,
  DeleteResourcePolicyCommand,
  GetAgentRuntimeCommand,
  PutResourcePolicyCommand,
  UpdateAgentRuntimeCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let arn: string;

beforeAll(async () => {
  provider = await startOidcServer();
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const agent = await deployAgent(platform, clients, {
    folder,
    authorizerConfiguration: {
      customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] },
    },
    requestHeaderConfiguration: { requestHeaderAllowlist: ['Authorization', 'X-Tenant'] },
  });
  arn = agent.arn;
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

/** Calls with a bearer token, as any HTTP client does. */
function call(token: string, headers: Record<string, string> = {}): Promise<Response> {
  const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
  return fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'x-amzn-bedrock-agentcore-runtime-session-id': sessionId('oauth'),
      ...headers,
    },
    body: JSON.stringify({ do: 'headers' }),
  });
}

describe('a runtime with a JWT authorizer', () => {
  it.each([
    'http://10.1.2.3/.well-known/openid-configuration',
    'http://169.254.169.254/.well-known/openid-configuration',
    'http://[::1]:8080/.well-known/openid-configuration',
  ])('is refused at create and update when its provider is at %s', async (discoveryUrl) => {
    const found = await clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: arn.split('/')[1] }));
    const { agentRuntimeId, authorizerConfiguration } = found;
    const { agentRuntimeArtifact, roleArn, networkConfiguration, requestHeaderConfiguration } = found;
    const call = { agentRuntimeArtifact, roleArn, networkConfiguration, requestHeaderConfiguration };
    const refused = { authorizerConfiguration: { customJWTAuthorizer: { discoveryUrl, allowedAudience: ['a'] } } };
    const problem = {
      name: 'ValidationException',
      fieldList: [{ name: 'authorizerConfiguration.customJWTAuthorizer.discoveryUrl', message: expect.any(String) }],
    };
    const create = new CreateAgentRuntimeCommand({ ...call, ...refused, agentRuntimeName: 'elsewhere' });
    await expect(clients.control.send(create)).rejects.toMatchObject(problem);
    const update = new UpdateAgentRuntimeCommand({ ...call, ...refused, agentRuntimeId });
    await expect(clients.control.send(update)).rejects.toMatchObject(problem);
    // With the provider whose range was opened the same call is taken.
    const good = new UpdateAgentRuntimeCommand({ ...call, authorizerConfiguration, agentRuntimeId });
    expect((await clients.control.send(good)).agentRuntimeId).toBe(agentRuntimeId);
  });

  it('takes tokens of its provider and passes on what its allowlist names', async () => {
    const token = await provider.token();
    const answer = await call(token, { 'x-tenant': 'blue', 'x-other': 'no' });
    expect(answer.status).toBe(200);
    const seen = (await answer.json()) as Record<string, string>;
    expect(seen).toMatchObject({ authorization: `Bearer ${token}`, 'x-tenant': 'blue' });
    expect(seen).not.toHaveProperty('x-other');
  });

  it('refuses altered tokens with a challenge, and signed requests by name', async () => {
    const token = await provider.token();
    const altered = await call(`${token.slice(0, -4)}AAAA`);
    expect(altered.status).toBe(401);
    expect(altered.headers.get('www-authenticate')).toContain('Bearer');
    await expect(invokeText(clients, arn, sessionId('signed'), {})).rejects.toMatchObject({
      name: 'AccessDeniedException',
      message: expect.stringContaining('Authorization method mismatch'),
    });
  });

  it('runs commands for a token, as the original does, until a policy of the runtime says no', async () => {
    const token = await provider.token();
    const command = async (): Promise<{ status: number; text: string }> => {
      const answer = await fetch(`${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/commands`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'x-amzn-bedrock-agentcore-runtime-session-id': sessionId('command'),
        },
        body: JSON.stringify({ command: 'echo from the shell' }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    expect(await command()).toMatchObject({ status: 200, text: expect.stringContaining('from the shell') });
    const policy = JSON.stringify({
      Version: '2012-10-17',
      Statement: [
        { Effect: 'Deny', Principal: '*', Action: 'bedrock-agentcore:InvokeAgentRuntimeCommand*', Resource: arn },
      ],
    });
    await clients.control.send(new PutResourcePolicyCommand({ resourceArn: arn, policy }));
    try {
      expect(await command()).toMatchObject({ status: 403, text: expect.stringContaining('resource policy') });
      // The agent itself still answers.
      expect((await call(token)).status).toBe(200);
    } finally {
      await clients.control.send(new DeleteResourcePolicyCommand({ resourceArn: arn }));
    }
  });

  it('has a neighbour with signatures that takes no tokens', async () => {
    const signed = await deployAgent(platform, clients, { folder });
    const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(signed.arn)}/invocations`;
    const answer = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${await provider.token()}` },
      body: '{}',
    });
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([403, 'AccessDeniedException']);
    const ok = await clients.data.send(
      new InvokeAgentRuntimeCommand({
        agentRuntimeArn: signed.arn,
        runtimeSessionId: sessionId('ok'),
        payload: Buffer.from('{"do":"count"}'),
      }),
    );
    expect(ok.statusCode).toBe(200);
  });
});
