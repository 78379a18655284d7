import type { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';
import type { BedrockAgentCoreControlClient } from '@aws-sdk/client-bedrock-agentcore-control';
import type { LambdaClient } from '@aws-sdk/client-lambda';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Connection } from './connection.ts';
import { credentialsOf } from './credentials.ts';

// The SDKs are loaded where they are used: together they cost a third of a second, which `--help` must not pay.

/** The control plane of that platform. */
export async function controlClient(connection: Connection): Promise<BedrockAgentCoreControlClient> {
  const { BedrockAgentCoreControlClient } = await import('@aws-sdk/client-bedrock-agentcore-control');
  return new BedrockAgentCoreControlClient(common(connection));
}

/** The data plane; no retries, because an invocation may already have acted. */
export async function dataClient(connection: Connection): Promise<BedrockAgentCoreClient> {
  const { BedrockAgentCoreClient } = await import('@aws-sdk/client-bedrock-agentcore');
  return new BedrockAgentCoreClient({ ...common(connection), maxAttempts: 1 });
}

/** The platform's functions; no retries, because an event may already have been handled. */
export async function functionClient(connection: Connection): Promise<LambdaClient> {
  const { LambdaClient } = await import('@aws-sdk/client-lambda');
  return new LambdaClient({ ...common(connection), maxAttempts: 1 });
}

/** The platform's object storage. */
export async function objectClient(connection: Connection): Promise<S3Client> {
  const { S3Client } = await import('@aws-sdk/client-s3');
  return new S3Client({ ...common(connection), endpoint: `${connection.endpoint}/s3`, forcePathStyle: true });
}

function common(connection: Connection) {
  return {
    endpoint: connection.endpoint,
    region: connection.region,
    credentials: credentialsOf(connection),
    maxAttempts: 3,
    requestHandler: { connectionTimeout: 5000 },
  };
}
