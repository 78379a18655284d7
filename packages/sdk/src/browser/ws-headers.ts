import type { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';

/** Where a program drives a session, and the headers that let it in. They count for five minutes. */
export interface WsHeaders {
  url: string;
  headers: Record<string, string>;
}

/** Signs the handshake of that address with the client's own credentials (SigV4, in headers). */
export async function signHandshake(client: BedrockAgentCoreClient, url: string): Promise<WsHeaders> {
  const { host, hostname, port, pathname, protocol } = new URL(url);
  const signer = await client.config.signer();
  const request = {
    method: 'GET',
    protocol: protocol.replace('ws', 'http'),
    hostname,
    ...(port === '' ? {} : { port: Number(port) }),
    path: pathname,
    query: {},
    headers: { host },
  };
  const { headers } = await signer.sign(request);
  return { url, headers };
}
