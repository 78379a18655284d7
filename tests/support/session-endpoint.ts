import { cp, mkdtemp, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import type { Clients } from './clients.ts';
import type { TestPlatform } from './platform-process.ts';

const root = resolve(import.meta.dirname, '../..');

/** Runs `use` with a folder that holds the agent of session endpoints and what it needs. */
export async function withEndpointAgent<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'endpoint-agent-'));
  try {
    await cp(join(root, 'tests/support/endpoint-agent'), folder, { recursive: true });
    await cp(join(root, 'node_modules/ws'), join(folder, 'node_modules/ws'), { recursive: true });
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The address that an invocation of the session answers with; undefined when it answers with none. By the AWS SDK, which does not have the member yet. */
export async function endpointOf(clients: Clients, agentRuntimeArn: string, runtimeSessionId: string) {
  const payload = Buffer.from('{"do":"count"}');
  const invoke = new InvokeAgentRuntimeCommand({ agentRuntimeArn, runtimeSessionId, payload });
  let address: string | undefined;
  invoke.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { headers: Record<string, string> };
      address = headers['x-amzn-bedrock-agentcore-runtime-session-endpoint-url'];
      return result;
    },
    { step: 'deserialize' },
  );
  await (await clients.data.send(invoke)).response?.transformToString();
  return address;
}

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

interface Asked {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  credentials?: Credentials;
}

/** Signs a request to any address by the official signer; `presign` puts the signature into the URL. */
export async function signed(
  platform: TestPlatform,
  url: string,
  { method = 'GET', headers = {}, body, credentials = platform.credentials }: Asked = {},
  presign = false,
): Promise<{ url: string; headers: Record<string, string> }> {
  const at = new URL(url);
  const signer = new SignatureV4({
    ...{ service: 'bedrock-agentcore', region: platform.ready.region, credentials, sha256: Sha256 },
  });
  const unsigned = {
    ...{ method, protocol: at.protocol, hostname: at.hostname, port: Number(at.port), path: at.pathname },
    query: Object.fromEntries(at.searchParams),
    headers: { host: at.host, ...headers },
    ...(body === undefined ? {} : { body }),
  };
  if (!presign) return { url, headers: (await signer.sign(unsigned)).headers };
  const { query } = await signer.presign(unsigned, { expiresIn: 60 });
  at.search = new URLSearchParams(query as Record<string, string>).toString();
  return { url: at.href, headers };
}

export interface Answered {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

/** Sends a request as it is and gives the whole answer. */
export async function send(url: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Answered> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { method, headers, agent: false }).once('response', resolve).once('error', reject).end(body);
  });
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}

/** The same, signed in its header. */
export async function sendSigned(platform: TestPlatform, url: string, asked: Asked = {}): Promise<Answered> {
  const { headers } = await signed(platform, url, asked);
  return send(url, { ...asked, headers });
}
