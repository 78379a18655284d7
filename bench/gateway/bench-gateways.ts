import {
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayTargetCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { postMcp, settledTarget, signingFetch } from '../../tests/support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { journalSettled } from '../support/metrics.ts';
import { signedRequest } from '../support/signed-requests.ts';

/** Load is what is measured here, not how a caller is kept from it. */
const SERVER = ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8', '--quotas-requests-per-second', '0'];
/** Requests are signed for so many different seconds, as those of many clients are. */
const SECONDS = 16;
const BUCKET = 'documents';

/** What a request to an MCP endpoint has beside its authorization. */
export const MCP_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-06-18',
};

export const mcpPathOf = (gatewayId: string): string => `/gateways/${gatewayId}/mcp`;

/** The gateways of one real platform. */
export class BenchGateways {
  readonly platform: TestPlatform;
  readonly clients: Clients;
  readonly endpoint: URL;

  /** `credentials`: of another server on the same database, if not its own. */
  constructor(platform: TestPlatform, credentials = platform.credentials) {
    this.platform = { ...platform, credentials };
    this.clients = clientsOf(this.platform);
    this.endpoint = new URL(platform.ready.endpoint);
  }

  /** On data of its own. */
  static async start(more: readonly string[] = []): Promise<BenchGateways> {
    const gateways = new BenchGateways(await startTestPlatform({ args: [...SERVER, ...more] }));
    await gateways.clients.s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
    return gateways;
  }

  get port(): number {
    return Number(this.endpoint.port);
  }

  /** Makes one that takes signed requests, unless told; resolves with its id. */
  async create(name: string, more: Partial<CreateGatewayCommandInput> = {}): Promise<string> {
    const { defaultRoleArn: roleArn } = this.platform.ready;
    const command = new CreateGatewayCommand({ name, roleArn, authorizerType: 'AWS_IAM', ...more });
    return (await this.clients.control.send(command)).gatewayId ?? '';
  }

  /** Keeps a document for `register`. */
  async keep(key: string, document: string): Promise<void> {
    await this.clients.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: document }));
  }

  /** Puts a document, that itself or one that was kept, behind a gateway; resolves once its tools are made. Rejects when they cannot be. */
  async register(
    gatewayIdentifier: string,
    name: string,
    document: { inlinePayload: string } | { key: string },
  ): Promise<void> {
    const openApiSchema = 'key' in document ? { s3: { uri: `s3://${BUCKET}/${document.key}` } } : document;
    const targetConfiguration = { mcp: { openApiSchema } };
    const command = new CreateGatewayTargetCommand({ gatewayIdentifier, name, targetConfiguration });
    const { targetId = '' } = await this.clients.control.send(command);
    const { status, statusReasons } = await settledTarget(this.clients, gatewayIdentifier, targetId);
    if (status !== 'READY') throw new Error(`${name} is ${status}: ${statusReasons?.join('; ')}`);
  }

  /** A message to a gateway as requests that are signed now; they are good for five minutes. */
  async signed(gatewayId: string, message: object, count = SECONDS): Promise<Buffer[]> {
    const { credentials, ready } = this.platform;
    const common = { endpoint: this.endpoint, headers: MCP_HEADERS, credentials, region: ready.region };
    const request = { ...common, path: mcpPathOf(gatewayId), body: JSON.stringify(message) };
    const now = Date.now();
    const made = Array.from({ length: count }, (_, at) => signedRequest(request, new Date(now - at * 1000)));
    return (await Promise.all(made)).map(({ wire }) => wire);
  }

  /** The result that one message is answered with. Rejects unless the answer is 200. */
  async ask<Result>(gatewayId: string, message: object): Promise<Result> {
    const url = new URL(mcpPathOf(gatewayId), this.endpoint).href;
    const { status, json } = await postMcp(url, message, { ...MCP_HEADERS, fetch: signingFetch(this.platform) });
    if (status !== 200) throw new Error(`${url}: ${status} ${JSON.stringify(json)}`);
    return (json as { result: Result }).result;
  }

  settled(): Promise<void> {
    return journalSettled(this.endpoint);
  }

  async end(): Promise<void> {
    this.clients.close();
    await this.platform.dispose();
  }
}
