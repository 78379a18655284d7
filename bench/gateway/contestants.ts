import type { OidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { wireOf } from '../support/signed-requests.ts';
import { type BenchGateways, MCP_HEADERS, mcpPathOf } from './bench-gateways.ts';
import { callOf, type OrdersApi, ordersDocument, TOOL } from './orders-api.ts';

/** What is measured: requests of one kind to one server. */
export interface Contestant {
  name: string;
  kind: 'direct' | 'gateway' | 'peer';
  port: number;
  /** Bytes of whole requests, one after the other; asked for anew before their signatures and tokens are too old. */
  requests(): Promise<Buffer[]>;
  /** Resolves when no work of earlier requests is left. */
  settled(): Promise<void>;
}

/** The API by itself. */
export function directContestant({ port }: OrdersApi): Contestant {
  const request = Buffer.from('GET /orders/7 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  return { name: 'direct', kind: 'direct', port, requests: async () => [request], settled: async () => undefined };
}

/** The API through a gateway that takes signed requests, and through one that takes tokens of `issuer`. */
export async function gatewayContestants(
  gateways: BenchGateways,
  { url }: OrdersApi,
  issuer: OidcServer,
): Promise<Contestant[]> {
  const document = { inlinePayload: ordersDocument(url) };
  const message = callOf(`shop___${TOOL}`);
  const signedId = await gateways.create('signed');
  const customJWTAuthorizer = { discoveryUrl: issuer.discoveryUrl, allowedAudience: ['urn:agents'] };
  const tokenId = await gateways.create('token', {
    authorizerType: 'CUSTOM_JWT',
    authorizerConfiguration: { customJWTAuthorizer },
  });
  for (const id of [signedId, tokenId]) await gateways.register(id, 'shop', document);
  const withToken = async (): Promise<Buffer> => {
    const authorization = `Bearer ${await issuer.token()}`;
    const headers = { host: gateways.endpoint.host, ...MCP_HEADERS, authorization };
    return wireOf(mcpPathOf(tokenId), headers, JSON.stringify(message));
  };
  const common = { kind: 'gateway', port: gateways.port, settled: () => gateways.settled() } as const;
  return [
    { ...common, name: 'signed', requests: () => gateways.signed(signedId, message) },
    { ...common, name: 'JWT', requests: async () => [await withToken()] },
  ];
}
