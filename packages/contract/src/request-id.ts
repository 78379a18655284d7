/** Header that carries the request id; AWS SDKs show it as `$metadata.requestId` or `ResponseMetadata.RequestId`. */
export const requestIdHeader = 'x-amzn-requestid';
