import { CreateGatewayTargetCommand, type TargetConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';
import { settledTarget } from '../../tests/support/gateway.ts';
import type { BenchGateways } from '../gateway/bench-gateways.ts';
import { signedRequest, wireOf } from '../support/signed-requests.ts';
import { PATH, type Provider, question } from './provider.ts';

/** What is measured: one question to one server. */
export interface Contestant {
  name: string;
  kind: 'direct' | 'gateway' | 'peer';
  port: number;
  /** Of its process; the provider's own time is nobody's. */
  pid?: number;
  /** Bytes of a whole request; asked for anew before its signature is too old. */
  request(stream: boolean): Promise<Buffer>;
  /** Resolves when no work of earlier requests is left. */
  settled(): Promise<void>;
}

/** Who is asked by a plain request, as OpenAI's clients send it. */
export function plain(name: string, kind: 'direct' | 'peer', port: number, pid?: number): Contestant {
  const headers = { host: `127.0.0.1:${port}`, 'content-type': 'application/json', authorization: 'Bearer sk-bench' };
  return {
    ...{ name, kind, port, ...(pid !== undefined && { pid }) },
    request: async (stream) => wireOf(PATH, headers, question(stream)),
    settled: async () => undefined,
  };
}

/** The provider behind one gateway that takes signed requests: as it comes, and as a provider of models. */
export async function gatewayContestants(gateways: BenchGateways, { url }: Provider): Promise<Contestant[]> {
  const id = await gateways.create('traffic');
  const operations = [{ path: PATH, models: [{ model: 'bench' }] }];
  await addTarget(gateways, id, 'raw', { http: { passthrough: { endpoint: url, protocolType: 'INFERENCE' } } });
  await addTarget(gateways, id, 'models', { inference: { provider: { endpoint: url, operations } } });
  return [
    { name: 'passthrough', word: 'raw' },
    { name: 'inference', word: 'inference' },
  ].map(({ name, word }) => ({
    ...{ name, kind: 'gateway', port: gateways.port, pid: gateways.platform.pid, settled: () => gateways.settled() },
    request: (stream) => signed(gateways, `/gateways/${id}/${word}${PATH}`, question(stream)),
  }));
}

async function addTarget(
  { clients }: BenchGateways,
  gatewayIdentifier: string,
  name: string,
  configuration: object,
): Promise<void> {
  // The SDK lacks what is newer than it.
  const targetConfiguration = configuration as TargetConfiguration;
  const input = { gatewayIdentifier, name, targetConfiguration };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  const { status, statusReasons } = await settledTarget(clients, gatewayIdentifier, targetId);
  if (status !== 'READY') throw new Error(`${name} is ${status}: ${statusReasons?.join('; ')}`);
}

async function signed({ platform, endpoint }: BenchGateways, path: string, body: string): Promise<Buffer> {
  const { credentials, ready } = platform;
  const headers = { 'content-type': 'application/json' };
  return (await signedRequest({ endpoint, path, headers, body, credentials, region: ready.region })).wire;
}
