import type { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';

/** Where a program drives a session, and the headers that let it in. They count for five minutes. */
export interface WsHeaders {
  url: string;
  headers: Record<string, string>;
}

/** Longest time for which the address of a live view may count, in seconds; the page that it leads to goes on as long as its credentials do. */
const LONGEST_SECONDS = 300;

/** Signs the address of a live view with the client's own credentials, in its query. Throws a RangeError above 300 seconds. */
export async function presignView(
  client: BedrockAgentCoreClient,
  address: string,
  { expiresIn, readOnly }: { expiresIn: number; readOnly: boolean },
): Promise<string> {
  if (!(expiresIn > 0 && expiresIn <= LONGEST_SECONDS))
    throw new RangeError(`expiresIn must be between 1 and ${LONGEST_SECONDS} seconds.`);
  const { host, hostname, port, pathname, protocol, href } = new URL(address);
  const signer = await client.config.signer();
  if (!('presign' in signer) || typeof signer.presign !== 'function')
    throw new TypeError('The client has a signer that makes no presigned addresses.');
  const signed = await signer.presign(
    {
      ...{ method: 'GET', protocol, hostname, path: pathname, headers: { host } },
      ...(port === '' ? {} : { port: Number(port) }),
      query: readOnly ? { mode: 'read-only' } : {},
    },
    { expiresIn },
  );
  return `${href}?${new URLSearchParams(signed.query)}`;
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
