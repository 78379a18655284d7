import { createHash, createHmac } from 'node:crypto';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/nested-clients/sts';
import { SignatureV4 } from '@smithy/signature-v4';
import type { TestPlatform } from './platform-process.ts';

class Sha256 {
  #hash;
  constructor(secret?: unknown) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret as Buffer);
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {}
}

/** A request to the platform's own administration, signed as root. */
async function administer(
  { ready, credentials }: TestPlatform,
  method: string,
  path: string,
  content: object,
): Promise<void> {
  const { host, hostname } = new URL(ready.endpoint);
  const signer = new SignatureV4({ service: 'bedrock-agentcore', region: ready.region, credentials, sha256: Sha256 });
  const body = JSON.stringify(content);
  const headers = { host, 'content-type': 'application/json' };
  const signed = await signer.sign({
    method,
    protocol: 'http:',
    hostname,
    path: `/_platform/iam${path}`,
    query: {},
    headers,
    body,
  });
  const { host: _, ...rest } = signed.headers;
  const answer = await fetch(`${ready.endpoint}/_platform/iam${path}`, { method, headers: rest, body });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
}

export interface RoleCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
}

/** Makes a role with one policy of these statements, which `Principal` may assume (the platform, for agents, when not given). Gives its ARN. */
export async function newRole(
  platform: TestPlatform,
  roleName: string,
  Statement: object[],
  Principal: object = { Service: 'bedrock-agentcore.amazonaws.com' },
): Promise<string> {
  const trust = { Statement: [{ Effect: 'Allow', Principal, Action: 'sts:AssumeRole' }] };
  await administer(platform, 'POST', '/roles', { roleName, trustPolicy: trust });
  await setPolicy(platform, roleName, Statement);
  return `arn:aws:iam::${platform.ready.accountId}:role/${roleName}`;
}

/** Replaces the one policy of a role that `newRole` has made. */
export async function setPolicy(platform: TestPlatform, roleName: string, Statement: object[]): Promise<void> {
  const policyDocument = { Version: '2012-10-17', Statement };
  await administer(platform, 'PUT', `/roles/${roleName}/policies/own`, { policyDocument });
}

/** Makes a role with one policy of these statements, assumes it, and gives its credentials. */
export async function assumeNewRole(
  platform: TestPlatform,
  roleName: string,
  Statement: object[],
): Promise<RoleCredentials> {
  const { accountId, endpoint, region } = platform.ready;
  const RoleArn = await newRole(platform, roleName, Statement, { AWS: `arn:aws:iam::${accountId}:root` });
  const sts = new STSClient({ endpoint, region, credentials: platform.credentials });
  try {
    const { Credentials } = await sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: roleName }));
    const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '' } = Credentials ?? {};
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken };
  } finally {
    sts.destroy();
  }
}
