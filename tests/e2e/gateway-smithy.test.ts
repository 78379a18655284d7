import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CreateGatewayCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import type { Client } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthenticator } from '../../packages/platform/src/kernel/auth/index.ts';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { selfSigned } from '../support/certificates.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/**
 * Models of AWS's own shape say where a service is by its endpoint prefix, so its host is AWS's. Here the hosts file leads to this machine, where a
 * server with a certificate of that name keeps each request as it came.
 */
const ROOT = process.getuid?.() === 0;
const ADDRESS = '127.0.15.4';
const REGION = 'us-east-1';
const KEYS = { accessKeyId: 'AKIAOFTHEROLE', secretAccessKey: 'what/the+operator-gave' };

let platform: TestPlatform;
let clients: Clients;
let server: Server;
let folder: string;
let gatewayId: string;
let client: Client;
let authority: string;
const seen: { request: IncomingMessage; body: string }[] = [];
let answerWith: { status?: number; type: string; text: string };

const shapes = (all: Record<string, object>): Record<string, object> =>
  Object.fromEntries(Object.entries(all).map(([name, shape]) => [`lab#${name}`, shape]));
const member = (target: string, traits: object = {}): object => ({
  target: /^[a-z]/.test(target) ? `lab#${target}` : `smithy.api#${target}`,
  traits: Object.fromEntries(Object.entries(traits).map(([name, value]) => [`smithy.api#${name}`, value])),
});
const structure = (members: object, traits: object = {}): object => ({
  ...{ type: 'structure', members },
  traits: Object.fromEntries(Object.entries(traits).map(([name, value]) => [`smithy.api#${name}`, value])),
});

/** A service of that protocol with one operation, `Put`, which answers what `output` says. */
function model(protocol: string, { input, output, http, more = {} }: Record<string, object>): string {
  const prefix = protocol.toLowerCase().replace('_', '-');
  return JSON.stringify({
    smithy: '2.0',
    shapes: shapes({
      Lab: {
        ...{ type: 'service', version: '2020-01-01', operations: [{ target: 'lab#Put' }] },
        traits: {
          [`aws.protocols#${protocol}`]: {},
          'aws.api#service': { sdkId: 'Lab', endpointPrefix: prefix },
          'aws.auth#sigv4': { name: 'lab' },
          'smithy.api#xmlNamespace': { uri: 'https://lab.example/' },
        },
      },
      Put: {
        ...{ type: 'operation', input: { target: 'lab#PutInput' }, output: { target: 'lab#PutOutput' } },
        traits: { 'smithy.api#documentation': '<p>Puts it.</p>', ...(http && { 'smithy.api#http': http }) },
      },
      PutInput: input ?? {},
      PutOutput: output ?? {},
      names: { type: 'list', member: { target: 'smithy.api#String' } },
      counts: { type: 'map', key: { target: 'smithy.api#String' }, value: { target: 'smithy.api#Integer' } },
      ...more,
    }),
  });
}

beforeAll(async () => {
  if (!ROOT) return;
  const protocols = ['restjson1', 'awsjson1-0', 'awsquery', 'restxml'];
  const hosts = protocols.map((prefix) => `${prefix}.${REGION}.amazonaws.com`);
  const certificate = await selfSigned(`subjectAltName=${hosts.map((host) => `DNS:${host}`).join()}`);
  authority = certificate.cert;
  server = createServer(certificate, async (request, response) => {
    seen.push({ request, body: await text(request) });
    const { status = 200, type, text: body } = answerWith;
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  await new Promise<void>((done) => server.listen(443, ADDRESS, done));
  expect((server.address() as AddressInfo).address).toBe(ADDRESS);
  folder = await mkdtemp(join(tmpdir(), 'gateway-smithy-'));
  const [hostsFile, roles] = [join(folder, 'hosts'), join(folder, 'roles')];
  await writeFile(hostsFile, ['127.0.0.1 localhost', ...hosts.map((host) => `${ADDRESS} ${host}`), ''].join('\n'));
  platform = await startTestPlatform({
    hosts: hostsFile,
    args: ['--allow-private-egress', '127.0.0.0/8', '--gateway-role-credentials', roles, '--region', REGION],
  });
  clients = clientsOf(platform);
  const { accessKeyId, secretAccessKey } = KEYS;
  const roleArn = platform.ready.defaultRoleArn;
  await writeFile(
    roles,
    `[${roleArn}]\naws_access_key_id=${accessKeyId}\naws_secret_access_key=${secretAccessKey}\nhosts=*.${REGION}.amazonaws.com\n`,
  );
  const made = await clients.control.send(
    new CreateGatewayCommand({ name: 'models', roleArn, authorizerType: 'AWS_IAM' }),
  );
  gatewayId = made.gatewayId ?? '';
  client = await connectMcp(made.gatewayUrl ?? '', { fetch: signingFetch(platform) });
  const content = { value: authority };
  await signedFetch(platform, { method: 'PUT', path: '/_platform/secrets/AUTHORITY', content });
});
afterAll(async () => {
  await client?.close();
  clients?.close();
  await platform?.dispose();
  server?.closeAllConnections();
  server?.close();
  if (folder) await rm(folder, { recursive: true });
});

/** A target of that model whose requests are signed by the gateway's role. */
async function add(name: string, inlinePayload: string): Promise<void> {
  const secret = await signedFetch(platform, { method: 'GET', path: '/_platform/secrets/AUTHORITY' });
  const { arn: secretArn } = (await secret.json()) as { arn: string };
  const content = {
    ...{ name, targetConfiguration: { mcp: { smithyModel: { inlinePayload } } } },
    credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }],
    certificateConfigurations: [{ secretsManager: { secretArn } }],
  };
  // The SDK is older than the member.
  const answer = await signedFetch(platform, { method: 'POST', path: `/gateways/${gatewayId}/targets/`, content });
  const { targetId = '', message } = (await answer.json()) as { targetId?: string; message?: string };
  expect(message).toBeUndefined();
  expect(await settledTarget(clients, gatewayId, targetId)).toMatchObject({ status: 'READY' });
  // The gateway was used before: that it has another target now, it is told by the change feed.
  await expect
    .poll(async () => (await client.listTools()).tools.map(({ name: listed }) => listed), { timeout: 30_000 })
    .toContain(`${name}___Put`);
}

/** Calls the tool, and what came of it over the wire, whose signature another verifier takes. */
async function put(target: string, args: object) {
  const result = await client.callTool({ name: `${target}___Put`, arguments: args as Record<string, unknown> });
  const { request, body } = seen.at(-1) ?? expect.unreachable(JSON.stringify(result));
  const { method = '', url: rawUrl = '', rawHeaders, headers } = request;
  const principal = { kind: 'iam' as const, accountId: '1', arn: 'arn:role', accessKeyId: KEYS.accessKeyId, tags: {} };
  const authenticator = createAuthenticator({
    ...{ clock: systemClock, region: REGION },
    keys: { find: () => ({ secretAccessKey: KEYS.secretAccessKey, principal }) },
  });
  const signed = await authenticator.authenticate({ method, rawUrl, rawHeaders, service: 'lab' });
  expect(signed.principal.arn).toBe('arn:role');
  return { result, line: `${method} ${rawUrl}`, headers, body };
}

describe.skipIf(!ROOT)('a Smithy model behind a gateway (needs root, for a hosts file and port 443)', () => {
  it('of restJson1: path, query, headers and body are where its traits put them', async () => {
    const input = structure({
      id: member('String', { httpLabel: {}, required: {} }),
      key: member('String', { httpLabel: {}, required: {} }),
      tags: member('names', { httpQuery: 'tag' }),
      when: member('Timestamp', { httpHeader: 'X-When' }),
      meta: member('headers', { httpPrefixHeaders: 'X-Meta-' }),
      named: member('String', { jsonName: 'Renamed' }),
      at: member('Timestamp'),
      data: member('Blob'),
      counts: member('counts'),
    });
    const output = structure({ named: member('String', { jsonName: 'Renamed' }), total: member('Integer') });
    const headers = { type: 'map', key: { target: 'smithy.api#String' }, value: { target: 'smithy.api#String' } };
    const http = { method: 'PUT', uri: '/things/{id}/{key+}?fixed=1', code: 200 };
    await add('json', model('restJson1', { input, output, http, more: { headers } }));
    answerWith = { type: 'application/json', text: '{"Renamed":"x","total":7}' };
    const {
      result,
      line,
      headers: sent,
      body,
    } = await put('json', {
      ...{ id: 'a/b', key: 'c/d e', tags: ['x&y', 'z'], when: 'Mon, 23 Nov 2026 10:00:00 GMT', meta: { color: 'red' } },
      ...{ Renamed: 'n', at: 1.5, data: 'aGk=', counts: { one: 1 } },
    });
    expect(line).toBe('PUT /things/a%2Fb/c/d%20e?fixed=1&tag=x%26y&tag=z');
    expect(sent).toMatchObject({
      ...{ 'content-type': 'application/json', 'x-when': 'Mon, 23 Nov 2026 10:00:00 GMT', 'x-meta-color': 'red' },
    });
    expect(JSON.parse(body)).toEqual({ Renamed: 'n', at: 1.5, data: 'aGk=', counts: { one: 1 } });
    expect(result.structuredContent).toEqual({ Renamed: 'x', total: 7 });
  });

  it('of awsJson1_0: the target names the operation, and an error is the tool’s', async () => {
    const input = structure({ Name: member('String', { required: {} }), Names: member('names') });
    await add('rpc', model('awsJson1_0', { input, output: structure({ Total: member('Integer') }) }));
    answerWith = { type: 'application/x-amz-json-1.0', text: '{"Total":2}' };
    const { result, line, headers, body } = await put('rpc', { Name: 'n', Names: ['a', 'b'] });
    expect({ line, body }).toEqual({ line: 'POST /', body: '{"Name":"n","Names":["a","b"]}' });
    expect(headers).toMatchObject({ 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'Lab.Put' });
    expect(result.structuredContent).toEqual({ Total: 2 });
    const refusal = '{"__type":"lab#NotFoundException","message":"no such thing"}';
    answerWith = { status: 400, type: 'application/x-amz-json-1.0', text: refusal };
    const failed = await put('rpc', { Name: 'none' });
    expect(failed.result.isError).toBe(true);
    expect(JSON.stringify(failed.result.content)).toMatch(/400.*NotFoundException.*no such thing/);
    const before = seen.length;
    expect(await client.callTool({ name: 'rpc___Put', arguments: { Names: ['a'] } })).toMatchObject({ isError: true });
    expect(seen).toHaveLength(before);
  });

  it('of awsQuery: a form with members, entries and fields by their paths, answered in XML', async () => {
    const inner = structure({ Color: member('String') });
    const input = structure({
      Name: member('String'),
      Names: member('names'),
      Flat: member('names', { xmlFlattened: {}, xmlName: 'Item' }),
      Counts: member('counts'),
      Inner: member('inner'),
    });
    const output = structure({ Total: member('Integer'), Names: member('names') });
    await add('query', model('awsQuery', { input, output, more: { inner } }));
    answerWith = {
      type: 'text/xml',
      text: '<PutResponse xmlns="https://lab.example/"><PutResult><Total>3</Total><Names><member>x</member><member>&lt;y&gt;</member></Names></PutResult></PutResponse>',
    };
    const args = { Name: 'a b&c=d', Names: ['x', 'y'], Flat: ['p'], Counts: { one: 1 }, Inner: { Color: 'ré' } };
    const { result, line, headers, body } = await put('query', args);
    expect(line).toBe('POST /');
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(body.split('&')).toEqual([
      ...['Action=Put', 'Version=2020-01-01', 'Name=a%20b%26c%3Dd', 'Names.member.1=x', 'Names.member.2=y'],
      ...['Item.1=p', 'Counts.entry.1.key=one', 'Counts.entry.1.value=1', 'Inner.Color=r%C3%A9'],
    ]);
    expect(result.structuredContent).toEqual({ Total: 3, Names: ['x', '<y>'] });
  });

  it('of restXml: elements, attributes and wrapped lists, and the same back', async () => {
    const note = structure(
      {
        Title: member('String'),
        Language: member('String', { xmlAttribute: {}, xmlName: 'lang' }),
        Names: member('names'),
        Flat: member('names', { xmlFlattened: {} }),
      },
      { xmlName: 'Note' },
    );
    const input = structure({
      Id: member('String', { httpLabel: {}, required: {} }),
      Note: member('note', { httpPayload: {} }),
    });
    const output = structure({ Title: member('String'), Total: member('Integer') });
    const http = { method: 'PUT', uri: '/notes/{Id}', code: 200 };
    await add('xml', model('restXml', { input, output, http, more: { note } }));
    answerWith = { type: 'application/xml', text: '<PutOutput><Title>t &amp; u</Title><Total>4</Total></PutOutput>' };
    const Note = { Title: 'a<b>&"', Language: 'en', Names: ['x', 'y'], Flat: ['p', 'q'] };
    const { result, line, headers, body } = await put('xml', { Id: '7', Note });
    expect(line).toBe('PUT /notes/7');
    expect(headers['content-type']).toBe('application/xml');
    expect(body).toBe(
      '<Note xmlns="https://lab.example/" lang="en"><Title>a&lt;b&gt;&amp;&quot;</Title><Names><member>x</member><member>y</member></Names><Flat>p</Flat><Flat>q</Flat></Note>',
    );
    expect(result.structuredContent).toEqual({ Title: 't & u', Total: 4 });
  });
});
