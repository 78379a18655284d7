// The official MCP client over InvokeAgentRuntime, each request signed, or with a bearer TOKEN; two MCP sessions, in one runtime session when
// SESSION names it. Answers as JSON on stdout.
import { createHash, createHmac } from 'node:crypto';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { SignatureV4 } from '@smithy/signature-v4';

const { INVOKE_URL = '', SESSION = '', AWS_REGION = '', KEY_ID = '', KEY_SECRET = '', TOKEN = '' } = process.env;

class Sha256 {
  constructor(secret) {
    this.hash = secret ? createHmac('sha256', secret) : createHash('sha256');
  }
  update(chunk) {
    this.hash.update(chunk);
  }
  async digest() {
    return new Uint8Array(this.hash.digest());
  }
}

const signer = new SignatureV4({
  service: 'bedrock-agentcore',
  region: AWS_REGION,
  sha256: Sha256,
  credentials: { accessKeyId: KEY_ID, secretAccessKey: KEY_SECRET },
});

/** Status of the answers to GET and DELETE; of GET while the sessions live: a client whose stream has ended with its session asks once more. */
const answered = { GET: new Set(), DELETE: [] };
let ending = false;

async function send(url, init) {
  const counts = !ending;
  const response = await (TOKEN ? bearing(url, init) : signed(url, init));
  if (init.method === 'GET' && counts) answered.GET.add(response.status);
  if (init.method === 'DELETE') answered.DELETE.push(response.status);
  return response;
}

function bearing(url, init) {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${TOKEN}`);
  return fetch(url, { ...init, headers });
}

async function signed(url, init) {
  const { hostname, port, protocol, pathname, searchParams, host } = new URL(url);
  const request = {
    method: init.method,
    protocol,
    hostname,
    port: Number(port),
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: { ...Object.fromEntries(new Headers(init.headers)), host },
    body: init.body,
  };
  const { headers } = await signer.sign(request);
  return fetch(url, { ...init, headers });
}

async function connect() {
  const headers = SESSION ? { 'X-Amzn-Bedrock-AgentCore-Runtime-Session-Id': SESSION } : {};
  const transport = new StreamableHTTPClientTransport(new URL(INVOKE_URL), { fetch: send, requestInit: { headers } });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport);
  const count = async () => (await client.callTool({ name: 'count', arguments: {} })).content[0].text;
  return { client, transport, count };
}

const first = await connect();
const second = await connect();
const { tools } = await first.client.listTools();
const seen = {
  tools: tools.map(({ name }) => name),
  server: first.client.getServerVersion().name,
  counts: [await first.count(), await first.count(), await second.count(), await first.count()],
  sessions: new Set([first.transport.sessionId, second.transport.sessionId, undefined]).size - 1,
};
if (seen.sessions > 0 && !process.env.STATELESS) {
  const told = new Promise((resolve) =>
    first.client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => resolve(params.data)),
  );
  await first.client.callTool({ name: 'announce', arguments: {} });
  seen.told = await told;
}
ending = true;
await first.transport.terminateSession();
// The other one lives on.
seen.after = await second.count();
seen.answered = { GET: [...answered.GET], DELETE: answered.DELETE };
await first.client.close();
await second.client.close();
process.stdout.write(JSON.stringify(seen));
process.exit(0);
