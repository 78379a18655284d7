/** In which a workload access token travels: the vendor's newer and older name. Its SDKs read the newer first, some know the older alone. */
export const WORKLOAD_TOKEN_HEADERS = ['x-amz-bedrock-agentcore-identity-wat', 'workloadaccesstoken'] as const;
