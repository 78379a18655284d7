import { AssumeRoleCommand, STSClient } from '@aws-sdk/nested-clients/sts';
import type { TestPlatform } from './platform-process.ts';
import { signedFetch } from './signed-fetch.ts';

/** A request to the platform's own administration, signed as root. */
async function administer(
  platform: Pick<TestPlatform, 'ready' | 'credentials'>,
  method: string,
  path: string,
  content: object,
): Promise<unknown> {
  const answer = await signedFetch(platform, { method, path: `/_platform/iam${path}`, content });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? undefined : answer.json();
}

export interface RoleCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
}

/** Makes a role with one policy of these statements, which `Principal` may assume (the platform, for agents, when not given). Gives its ARN. */
export async function newRole(
  platform: Pick<TestPlatform, 'ready' | 'credentials'>,
  roleName: string,
  Statement: object[],
  Principal: object = { Service: 'bedrock-agentcore.amazonaws.com' },
): Promise<string> {
  const trust = { Statement: [{ Effect: 'Allow', Principal, Action: ['sts:AssumeRole', 'sts:SetSourceIdentity'] }] };
  await administer(platform, 'POST', '/roles', { roleName, trustPolicy: trust });
  await setPolicy(platform, roleName, Statement);
  return `arn:aws:iam::${platform.ready.accountId}:role/${roleName}`;
}

/** Replaces the one policy of a role that `newRole` has made, or of a user that `newUser` has. */
export async function setPolicy(
  platform: Pick<TestPlatform, 'ready' | 'credentials'>,
  name: string,
  Statement: object[],
  kind: 'roles' | 'users' = 'roles',
): Promise<void> {
  const policyDocument = { Version: '2012-10-17', Statement };
  await administer(platform, 'PUT', `/${kind}/${name}/policies/own`, { policyDocument });
}

/** Makes a user with one policy of these statements, and gives its access key. */
export async function newUser(
  platform: Pick<TestPlatform, 'ready' | 'credentials'>,
  userName: string,
  Statement: object[],
): Promise<{ accessKeyId: string; secretAccessKey: string }> {
  await administer(platform, 'POST', '/users', { userName });
  await setPolicy(platform, userName, Statement, 'users');
  const key = await administer(platform, 'POST', `/users/${userName}/access-keys`, {});
  return key as { accessKeyId: string; secretAccessKey: string };
}

/** Makes a role with one policy of these statements, assumes it, as `SourceIdentity` where that is given, and gives its credentials. */
export async function assumeNewRole(
  platform: Pick<TestPlatform, 'ready' | 'credentials'>,
  roleName: string,
  Statement: object[],
  SourceIdentity?: string,
): Promise<RoleCredentials> {
  const { accountId, endpoint, region } = platform.ready;
  const RoleArn = await newRole(platform, roleName, Statement, { AWS: `arn:aws:iam::${accountId}:root` });
  const sts = new STSClient({ endpoint, region, credentials: platform.credentials });
  try {
    const asked = { RoleArn, RoleSessionName: roleName, ...(SourceIdentity !== undefined && { SourceIdentity }) };
    const { Credentials } = await sts.send(new AssumeRoleCommand(asked));
    const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '' } = Credentials ?? {};
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken };
  } finally {
    sts.destroy();
  }
}
