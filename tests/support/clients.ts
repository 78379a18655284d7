import { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';
import { BedrockAgentCoreControlClient } from '@aws-sdk/client-bedrock-agentcore-control';
import { S3Client } from '@aws-sdk/client-s3';
import type { TestPlatform } from './platform-process.ts';

/** The official clients, unmodified but for the endpoint; `close` lets the test's process end. */
export interface Clients {
  data: BedrockAgentCoreClient;
  control: BedrockAgentCoreControlClient;
  s3: S3Client;
  close(): void;
}

export interface ClientOptions {
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
}

export function clientsOf(platform: TestPlatform, options: ClientOptions = {}): Clients {
  const { endpoint, region } = platform.ready;
  const common = { endpoint, region, maxAttempts: 1, credentials: options.credentials ?? platform.credentials };
  const data = new BedrockAgentCoreClient(common);
  const control = new BedrockAgentCoreControlClient(common);
  const s3 = new S3Client({ ...common, endpoint: `${endpoint}/s3`, forcePathStyle: true });
  return {
    data,
    control,
    s3,
    close: () => {
      for (const client of [data, control, s3]) client.destroy();
    },
  };
}
