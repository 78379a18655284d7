import { BedrockAgentCoreClient, type BedrockAgentCoreClientConfig } from '@aws-sdk/client-bedrock-agentcore';

export interface IdentityOptions {
  /** Token of a workload identity. Default: that of the request, or outside of the platform one of an identity of its own. */
  workloadIdentityToken?: string;
  /** Of the AWS client; region, endpoint and credentials may come from the environment, as for every AWS client. */
  client?: BedrockAgentCoreClientConfig;
}

/** One client for each set of settings, made when it is needed first. */
export function lazyClient({ client: config = {} }: IdentityOptions): () => BedrockAgentCoreClient {
  let client: BedrockAgentCoreClient | undefined;
  return () => {
    client ??= new BedrockAgentCoreClient(config);
    return client;
  };
}
