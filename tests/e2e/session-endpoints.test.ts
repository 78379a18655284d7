import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { DeleteResourcePolicyCommand, PutResourcePolicyCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { botoOf, codeDefinition, python, readyRuntime } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole, type RoleCredentials, setPolicy } from '../support/iam.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { endpointOf, send, sendSigned, signed, withEndpointAgent } from '../support/session-endpoint.ts';
import { Stream } from '../support/websocket.ts';

const run = promisify(execFile);

/** Plain processes share the ports of the machine. */
const PROVIDERS = [
  { provider: 'oci', port: 9000 },
  { provider: 'process', port: 11_831 },
] as const;

describe.each(PROVIDERS)('a session endpoint on provider $provider', ({ provider, port }) => {
  let platform: TestPlatform;
  let clients: Clients;
  let idp: OidcServer;
  let arn: string;
  let session: string;
  let url: string;
  let role: RoleCredentials;
  const right = 'bedrock-agentcore:InvokeAgentRuntimeProxy';

  const environmentVariables = { APPLICATION_PORT: String(port) };
  const newer = { allowedPorts: [{ port }, { portRange: { from: port + 1, to: port + 9 } }] };
  const addressOf = async (of: string, id: string): Promise<string> => (await endpointOf(clients, of, id)) ?? '';

  beforeAll(async () => {
    idp = await startOidcServer();
    platform = await startTestPlatform({ args: ['--sandbox', provider, '--allow-private-egress', '127.0.0.0/8'] });
    clients = clientsOf(platform);
    ({ arn } = await withEndpointAgent((folder) =>
      deployAgent(platform, clients, { folder, environmentVariables, newer }),
    ));
    session = sessionId('endpoint');
    url = `${await addressOf(arn, session)}/${port}`;
    role = await assumeNewRole(platform, 'proxies', [
      { Effect: 'Allow', Action: 'agentplatform:Nothing', Resource: '*' },
    ]);
  });
  afterAll(async () => {
    clients?.close();
    await platform?.dispose();
    await idp?.close();
  });

  it.skipIf(!python)('is what unmodified boto3 makes, reads and is told', async () => {
    const boto = botoOf(platform);
    const [created] = await withEndpointAgent(async (folder) =>
      boto.control([
        'CreateAgentRuntime',
        {
          agentRuntimeName: 'of_boto',
          ...(await codeDefinition(platform, clients, folder)),
          environmentVariables,
          ...newer,
        },
      ]),
    );
    const runtime = await readyRuntime(boto, created);
    expect(runtime.allowedPorts).toEqual(newer.allowedPorts);
    const payload = { $bytes: Buffer.from('{}').toString('base64') };
    const invocation = { agentRuntimeArn: arn, runtimeSessionId: session, payload };
    const [answer] = await boto.data(['InvokeAgentRuntime', invocation]);
    expect(`${answer?.output.sessionEndpointUrl}/${port}`).toBe(url);
    expect(answer?.output.sessionEndpointUrl.length).toBeLessThanOrEqual(128);
  });

  it('reaches the server inside by any method, with path, query and body as they were', async () => {
    const body = randomBytes(300_000);
    const sha256 = createHash('sha256').update(body).digest('hex');
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'OPTIONS']) {
      const headers = { 'content-length': String(body.length) };
      const { status, text } = await sendSigned(platform, `${url}/a%20b/c?x=1&y=%2F`, {
        ...{ method, headers, body },
      });
      expect([status, JSON.parse(text)]).toMatchObject([
        200,
        { method, url: '/a%20b/c?x=1&y=%2F', bytes: body.length, sha256, headers: { 'content-length': '300000' } },
      ]);
    }
    const root = await sendSigned(platform, url);
    expect(JSON.parse(root.text)).toMatchObject({ method: 'GET', url: '/', bytes: 0 });
    const head = await sendSigned(platform, `${url}/x`, { method: 'HEAD' });
    expect([head.status, Number(head.headers['content-length']) > 0, head.text]).toEqual([200, true, '']);
  });

  it('gives the server no credentials and no headers of the connection, the caller his answer as it is', async () => {
    const told = {
      cookie: 'theirs=1; agentplatform-session=secret',
      'x-mine': 'yes',
      connection: 'x-hop',
      'x-hop': '1',
    };
    const { text, headers } = await sendSigned(platform, `${url}/told`, { headers: told });
    const seen = JSON.parse(text).headers;
    expect(seen).toMatchObject({ host: `localhost:${port}`, cookie: 'theirs=1', 'x-mine': 'yes' });
    expect(seen['x-amzn-bedrock-agentcore-runtime-session-id']).toBe(session);
    expect(Object.keys(seen).filter((name) => /authorization|x-amz-|x-hop|token/.test(name))).toEqual([]);
    expect(headers['content-length']).toBe(String(text.length));
    const moved = await sendSigned(platform, `${url}/far`);
    expect([moved.status, moved.headers.location]).toEqual([302, '/page']);
    const refused = await sendSigned(platform, `${url}/no`);
    expect([refused.status, refused.text]).toEqual([401, 'no']);
  });

  it('is asked by curl and by botocore as they are', async () => {
    const { accessKeyId, secretAccessKey } = platform.credentials;
    const { region } = platform.ready;
    const curl = await run('curl', [
      ...['-sS', '--fail', '--user', `${accessKeyId}:${secretAccessKey}`],
      ...['--aws-sigv4', `aws:amz:${region}:bedrock-agentcore`, '--data', 'by curl', `${url}/curl?a=1`],
    ]);
    const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(JSON.parse(curl.stdout)).toMatchObject({ method: 'POST', url: '/curl?a=1', sha256: sha256('by curl') });
    if (!python) return;
    const script = join(import.meta.dirname, '../support/session_endpoint_botocore.py');
    const input = { url: `${url}/botocore?a=1`, region, method: 'PUT', body: 'by botocore' };
    const answer = (await python.run(script, input, platform.env)) as { status: number; text: string };
    expect(JSON.parse(answer.text)).toMatchObject({ url: '/botocore?a=1', sha256: sha256('by botocore') });
  });

  it('streams both ways', { timeout: 60_000 }, async () => {
    const next = async (parts: AsyncIterator<Buffer>): Promise<string> => String((await parts.next()).value);
    const begun = async (call: ClientRequest): Promise<IncomingMessage> => {
      const [answer] = await once(call, 'response');
      return answer;
    };
    const stream = { 'x-stream': sessionId('stream') };
    const { headers } = await signed(platform, `${url}/events`, { headers: stream });
    const events = await begun(request(`${url}/events`, { headers }).end());
    expect(events.headers['content-type']).toBe('text/event-stream');
    const parts = events[Symbol.asyncIterator]();
    expect(await next(parts)).toBe('data: first\n\n');
    await sendSigned(platform, `${url}/go-on`, { headers: stream });
    expect(await next(parts)).toBe('data: last\n\n');

    const unsigned = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
    const back = await signed(platform, `${url}/back`, { method: 'POST', headers: unsigned });
    const call = request(`${url}/back`, {
      method: 'POST',
      headers: { ...back.headers, 'transfer-encoding': 'chunked' },
    });
    call.write('there');
    const echoed = (await begun(call))[Symbol.asyncIterator]();
    expect(await next(echoed)).toBe('there');
    call.write('and back');
    expect(await next(echoed)).toBe('and back');
    call.end();
    expect(await echoed.next()).toMatchObject({ done: true });
  });

  it('refuses a body that is not the signed one', async () => {
    const { headers } = await signed(platform, `${url}/sum`, { method: 'POST', body: 'signed' });
    const answer = await send(`${url}/sum`, { method: 'POST', headers, body: 'forged' });
    expect([answer.status, answer.headers['x-amzn-errortype']]).toEqual([403, 'InvalidSignatureException']);
  });

  it('opens WebSockets, by header and by presigned URL', async () => {
    const ws = (address: string): string => address.replace('http', 'ws');
    const { headers } = await signed(platform, `${url}/live?a=1`);
    const stream = await Stream.open(ws(`${url}/live?a=1`), ['vite-hmr', 'other'], { headers });
    expect(await stream.ask('é𝄞')).toBe('é𝄞');
    const seen = JSON.parse(await stream.ask('headers'));
    expect(seen).toMatchObject({ url: '/live?a=1', protocol: 'vite-hmr', host: `localhost:${port}` });
    expect(seen).not.toHaveProperty('authorization');
    stream.socket.close(4001, 'bye');
    expect(await stream.closed).toEqual({ code: 4001, reason: 'bye' });
    const presigned = await signed(platform, `${url}/live?a=1`, {}, true);
    const browser = await Stream.open(ws(presigned.url), [], {});
    expect(JSON.parse(await browser.ask('headers'))).toMatchObject({ url: '/live?a=1' });
    browser.socket.close();
    const outside = await signed(platform, url.replace(`/${port}`, `/${port + 100}`));
    await expect(Stream.open(ws(outside.url), [], { headers: outside.headers })).rejects.toMatchObject({ status: 403 });
  });

  it('hands a page on to a program, and shows a browser nothing that runs or stays', async () => {
    const page = await sendSigned(platform, `${url}/page`);
    expect(page.headers).toMatchObject({
      'content-security-policy': "script-src 'self'",
      'set-cookie': ['theirs=1; Path=/', 'other=2'],
      vary: 'authorization',
    });
    const presigned = await signed(platform, `${url}/page`, {}, true);
    const shown = await send(presigned.url, { headers: { cookie: 'theirs=1' } });
    expect(shown).toMatchObject({ status: 200, text: page.text });
    expect(shown.headers).toMatchObject({
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
    for (const { headers } of [page, shown]) {
      expect(headers).not.toHaveProperty('clear-site-data');
      expect(headers).not.toHaveProperty('strict-transport-security');
    }
    expect(shown.headers).not.toHaveProperty('set-cookie');
    const told = await signed(platform, `${url}/told?a=1`, {}, true);
    const seen = JSON.parse((await send(told.url, { headers: { cookie: 'theirs=1' } })).text);
    expect([seen.url, seen.headers.cookie]).toEqual(['/told?a=1', undefined]);
  });

  it('leads to that session alone, at its allowed ports, while it lives', async () => {
    const pidAt = async (address: string): Promise<number> =>
      JSON.parse((await sendSigned(platform, address)).text).pid;
    // Processes of one machine cannot both have the port.
    if (provider === 'oci') {
      const second = sessionId('second');
      const theirs = `${await addressOf(arn, second)}/${port}`;
      expect(theirs).not.toBe(url);
      const here = JSON.parse((await sendSigned(platform, theirs)).text);
      expect(here.headers['x-amzn-bedrock-agentcore-runtime-session-id']).toBe(second);
      await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: second }));
      expect((await sendSigned(platform, theirs)).status).toBe(404);
      // The same id lives again, elsewhere; the old address starts nothing and leads nowhere.
      expect(await addressOf(arn, second)).not.toBe(theirs.slice(0, -`/${port}`.length));
      expect((await sendSigned(platform, theirs)).status).toBe(404);
    }
    const errorAt = async (address: string): Promise<unknown[]> => {
      const { status, headers, text } = await sendSigned(platform, address);
      return [status, headers['x-amzn-errortype'], JSON.parse(text).message];
    };
    const base = url.slice(0, -`/${port}`.length);
    const outside = [403, 'AccessDeniedException', expect.stringContaining('not among the allowedPorts')];
    expect(await errorAt(`${base}/${port + 10}/`)).toEqual(outside);
    expect(await errorAt(`${base}/8080/ping`)).toEqual(outside);
    expect(await errorAt(`${base}/${port + 1}/`)).toEqual([
      ...[424, 'RuntimeClientError', expect.stringContaining(`Nothing listens on port ${port + 1}`)],
    ]);
    const nowhere = base.replace(/s-[a-z0-9]{16}/, `s-${'0'.repeat(16)}`);
    for (const address of [`${nowhere}/${port}/`, `${base}/`, base.replace('.DEFAULT', '.other')])
      expect((await sendSigned(platform, address)).status).toBe(404);
    expect(await pidAt(url)).toBeGreaterThan(0);
  });

  it('asks for its own right, on runtime and endpoint, and keeps to the policies of both', async () => {
    const asked = async (): Promise<number> => (await sendSigned(platform, url, { credentials: role })).status;
    const allow = (Action: string, Resource: string | string[]) => ({ Effect: 'Allow', Action, Resource });
    await setPolicy(platform, 'proxies', [allow('bedrock-agentcore:InvokeAgentRuntime', '*')]);
    expect(await asked()).toBe(403);
    await setPolicy(platform, 'proxies', [allow(right, arn)]);
    expect(await asked()).toBe(403);
    await setPolicy(platform, 'proxies', [allow(right, [arn, `${arn}/runtime-endpoint/DEFAULT`])]);
    expect(await asked()).toBe(200);
    for (const resourceArn of [arn, `${arn}/runtime-endpoint/DEFAULT`]) {
      const deny = { Effect: 'Deny', Principal: '*', Action: right, Resource: resourceArn };
      const policy = JSON.stringify({ Version: '2012-10-17', Statement: [deny] });
      await clients.control.send(new PutResourcePolicyCommand({ resourceArn, policy }));
      expect(await asked()).toBe(403);
      await clients.control.send(new DeleteResourcePolicyCommand({ resourceArn }));
      expect(await asked()).toBe(200);
    }
    expect((await send(url)).status).toBe(403);
  });

  it('takes the tokens of a runtime with an authorizer, and no signatures there', async () => {
    const customJWTAuthorizer = { discoveryUrl: idp.discoveryUrl, allowedAudience: ['urn:agents'] };
    const own = { APPLICATION_PORT: String(port + 1) };
    const { arn: tokenArn } = await withEndpointAgent((folder) =>
      deployAgent(platform, clients, {
        ...{ folder, newer, environmentVariables: own, authorizerConfiguration: { customJWTAuthorizer } },
        requestHeaderConfiguration: { requestHeaderAllowlist: ['Authorization'] },
      }),
    );
    const authorization = `Bearer ${await idp.token()}`;
    const invoked = await send(`${platform.ready.endpoint}/runtimes/${encodeURIComponent(tokenArn)}/invocations`, {
      ...{ method: 'POST', headers: { authorization }, body: '{}' },
    });
    const theirs = `${invoked.headers['x-amzn-bedrock-agentcore-runtime-session-endpoint-url']}/${port + 1}`;
    const { status, text } = await send(theirs, { method: 'POST', headers: { authorization }, body: 'x' });
    expect([status, JSON.parse(text)]).toMatchObject([
      200,
      { bytes: 1, headers: { 'x-amzn-bedrock-agentcore-runtime-session-id': expect.any(String) } },
    ]);
    expect(JSON.parse(text).headers).not.toHaveProperty('authorization');
    const stream = await Stream.open(theirs.replace('http', 'ws'), [], { headers: { authorization } });
    expect(await stream.ask('hi')).toBe('hi');
    stream.socket.close();

    expect((await sendSigned(platform, theirs)).status).toBe(403);
    expect((await send(url, { headers: { authorization } })).status).toBe(403);
    expect((await send(theirs, { headers: { authorization: `${authorization.slice(0, -4)}AAAA` } })).status).toBe(401);
    const deny = { Effect: 'Deny', Principal: '*', Action: right, Resource: tokenArn };
    const policy = JSON.stringify({ Version: '2012-10-17', Statement: [deny] });
    await clients.control.send(new PutResourcePolicyCommand({ resourceArn: tokenArn, policy }));
    expect((await send(theirs, { headers: { authorization } })).status).toBe(403);
  });

  it('is none where no port is allowed', async () => {
    const { arn: closed } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
    });
    expect(await endpointOf(clients, closed, sessionId('closed'))).toBeUndefined();
  });

  // A process that ends would leave its port to whoever listens there next.
  if (provider === 'oci')
    it('says what became of a server that ended in the middle, and no longer leads there', async () => {
      const dying = sessionId('dying');
      const theirs = `${await addressOf(arn, dying)}/${port}`;
      const died = await sendSigned(platform, `${theirs}/die`);
      expect([died.status, died.text]).toEqual([424, expect.stringMatching(/status 7|broke/)]);
      await expect.poll(async () => (await sendSigned(platform, theirs)).status).toBe(404);
    });
});

describe('the answers of a server inside', () => {
  it('are no refusals of the platform, which a caller would have to answer for', async () => {
    const strict = ['--trusted-addresses', '', '--quotas-refusals-per-second', '1'];
    const platform = await startTestPlatform({ args: ['--sandbox', 'process', ...strict] });
    const clients = clientsOf(platform);
    try {
      const port = 11_851;
      const { arn } = await withEndpointAgent((folder) =>
        deployAgent(platform, clients, {
          ...{ folder, environmentVariables: { APPLICATION_PORT: String(port) }, newer: { allowedPorts: [{ port }] } },
        }),
      );
      const url = `${await endpointOf(clients, arn, sessionId('refusals'))}/${port}`;
      const statuses = async (times: number, ask: () => Promise<{ status: number }>): Promise<number[]> => {
        const seen: number[] = [];
        for (let i = 0; i < times; i += 1) seen.push((await ask()).status);
        return seen;
      };
      expect(await statuses(5, () => sendSigned(platform, `${url}/no`))).toEqual([401, 401, 401, 401, 401]);
      expect(await statuses(5, () => send(url))).toContain(429);
    } finally {
      clients.close();
      await platform.dispose();
    }
  });
});
