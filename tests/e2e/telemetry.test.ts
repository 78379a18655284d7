import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { InvokeAgentRuntimeCommandCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { defaultPythonRuntime } from '../../packages/cli/src/package/python.ts';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { OtlpReceiver, type ReceivedSpan } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const root = resolve(import.meta.dirname, '../..');
const packages = await pythonPackages(root);
const PROJECT = { name: 'trace_agent', language: 'javascript', entrypoint: 'index.mjs' } as const;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const KEY = 'otlp-key-8d3f21c0';

interface Told {
  headers: Record<string, string>;
  text?: string;
}

describe.each(['process', 'oci'])('traces of sessions on %s', (provider) => {
  let dir: string;
  let model: ScriptedModel;
  let receiver: OtlpReceiver;
  let platform: TestPlatform;
  let clients: Clients;
  let arn: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'telemetry-'));
    await mkdir(join(dir, 'node'));
    await bundleCode({ folder: join(root, 'tests/support/trace-agent'), file: PROJECT }, join(dir, 'node'));
    model = await startScriptedModel('openai');
    model.script = [{ text: 'hello', usage: { input: 12, output: 3, cacheRead: 0 } }];
    receiver = await OtlpReceiver.start();
    platform = await startTestPlatform({
      dataDir: join(dir, 'data'),
      args: ['--sandbox', provider, '--models-url', model.url, '--models-name', 'llama3.2'],
      env: {
        AGENTPLATFORM_MODELS_KEY: 'sk-models-secret',
        AGENTPLATFORM_TELEMETRY_OTLP_ENDPOINT: receiver.url,
        AGENTPLATFORM_TELEMETRY_OTLP_HEADERS: `api-key=${KEY}`,
        AGENTPLATFORM_TELEMETRY_METRICS_SECONDS: '1',
      },
    });
    clients = clientsOf(platform);
    ({ arn } = await deployAgent(platform, clients, { folder: join(dir, 'node') }));
  });
  afterAll(async () => {
    clients?.close();
    await platform?.dispose();
    await receiver?.close();
    await model?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const invoke = async (session: string, act: string, more = {}, of = arn): Promise<Told> =>
    JSON.parse(await invokeText(clients, of, session, { do: act, prompt: 'the-words-of-a-user' }, more));
  const traceparent = (trace = TRACE): string => `00-${trace}-${CALLER}-01`;
  /** The spans of a trace, by their names, once `name` is among them. */
  const trace = async (id: string, name: string | RegExp): Promise<Record<string, ReceivedSpan>> => {
    const of = (): ReceivedSpan[] => receiver.spans.filter(({ traceId }) => traceId === id);
    await expect
      .poll(() => of().filter((span) => span.name.match(name)).length, { timeout: 20_000 })
      .toBeGreaterThan(0);
    return Object.fromEntries(of().map((span) => [span.name.split(' ')[0], span]));
  };

  it('is one from the caller through the sandbox and back to a model', async () => {
    const session = sessionId('one');
    const told = await invoke(session, 'traced', {
      traceParent: traceparent(),
      traceState: 'rojo=1',
      baggage: 'tenant=7, not well formed',
    });
    expect(told.text).toBe('hello');
    const spans = await trace(TRACE, 'InvokeAgentRuntime');
    const { InvokeAgentRuntime: request, start, invoke_agent: agent, Converse: back, chat } = spans;
    expect(request).toMatchObject({ parentId: CALLER, kind: 2, status: 0 });
    expect(request?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'rpc.method': 'InvokeAgentRuntime',
      'cloud.resource_id': arn,
      'agentplatform.caller.kind': 'iam',
      'aws.request_id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(start).toMatchObject({ parentId: request?.spanId, name: 'start session' });
    expect(start?.attributes).toMatchObject({
      'agentplatform.sandbox.provider': provider,
      'agentplatform.sandbox.origin': 'made',
      'session.id': session,
    });
    expect(agent).toMatchObject({ parentId: request?.spanId, kind: 3 });
    expect(agent?.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.conversation.id': session,
    });
    expect(told.headers).toMatchObject({
      traceparent: `00-${TRACE}-${agent?.spanId}-01`,
      'x-amzn-trace-id': `Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=${agent?.spanId};Sampled=1`,
      tracestate: 'rojo=1',
      baggage: 'tenant=7',
    });
    expect(back).toMatchObject({ parentId: agent?.spanId, kind: 2 });
    expect(back?.attributes['agentplatform.caller.kind']).toBe('sandbox');
    expect(chat).toMatchObject({ parentId: back?.spanId, kind: 3 });
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'llama3.2',
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.usage.output_tokens': 3,
    });
  });

  it('is taken up from X-Ray, and joined by what comes back with its header', async () => {
    const id = `1af7651916cd43dd8448eb211c80319${provider.length}`;
    const root = `Root=1-${id.slice(0, 8)}-${id.slice(8)};Parent=${CALLER};Sampled=0`;
    expect(await invoke(sessionId('xray'), 'xray', { traceId: root })).toMatchObject({ text: 'hello' });
    const { InvokeAgentRuntime: request, invoke_agent: agent, Converse: back } = await trace(id, 'InvokeAgentRuntime');
    expect(request?.parentId).toBe(CALLER);
    expect(back?.parentId).toBe(agent?.spanId);
  });

  it('is joined without any header by what the first request of a session asks, and by nothing later', async () => {
    const session = sessionId('certain');
    const told = await invoke(session, 'untraced');
    expect(told.text).toBe('hello');
    const [, first = '', agent] = told.headers.traceparent?.split('-') ?? [];
    expect((await trace(first, 'InvokeAgentRuntime')).Converse?.parentId).toBe(agent);
    const again = await invoke(session, 'untraced');
    const [, second = ''] = again.headers.traceparent?.split('-') ?? [];
    expect(await trace(second, 'InvokeAgentRuntime')).not.toHaveProperty('Converse');
  });

  it('goes along with a WebSocket and a command', async () => {
    const target = { arn };
    const signer = new StreamSigner(platform);
    const id = `2af7651916cd43dd8448eb211c80319${provider.length}`;
    const headers = { ...(await signer.headers(target, sessionId('socket'))), traceparent: traceparent(id) };
    const stream = await Stream.open(signer.url(target), [], { headers });
    const seen = JSON.parse(await stream.ask('headers'));
    stream.socket.close();
    await stream.closed;
    const spans = await trace(id, 'InvokeAgentRuntimeWithWebSocketStream');
    const { InvokeAgentRuntimeWithWebSocketStream: opened, invoke_agent: agent } = spans;
    expect(opened).toMatchObject({ parentId: CALLER, attributes: { 'http.response.status_code': 101 } });
    expect(seen.traceparent).toBe(`00-${id}-${agent?.spanId}-01`);

    const answer = await clients.data.send(
      new InvokeAgentRuntimeCommandCommand({
        agentRuntimeArn: arn,
        runtimeSessionId: sessionId('command'),
        body: { command: 'echo "$TRACEPARENT"' },
      }),
    );
    let out = '';
    for await (const { chunk } of answer.stream ?? []) out += chunk?.contentDelta?.stdout ?? '';
    const [, commandTrace = '', commandSpan] = out.trim().split('-');
    expect((await trace(commandTrace, 'execute_command')).execute_command?.spanId).toBe(commandSpan);
  });

  it('has a span for what is no operation, by its declared path', async () => {
    await fetch(`${platform.ready.endpoint}/metrics`);
    await expect
      .poll(() => receiver.spans.map(({ attributes }) => attributes['http.route']), { timeout: 20_000 })
      .toContain('/metrics');
  });

  it('comes with metrics, as they are at /metrics', async () => {
    await invoke(sessionId('measured'), 'traced');
    const counted = () => {
      const all = receiver.metrics.at(-1);
      const requests = all?.get('agentplatform_request_duration_seconds')?.points ?? [];
      const invocations = requests.find(({ attributes }) => attributes.operation === 'InvokeAgentRuntime');
      const kinds = all?.get('agentplatform_sessions_by_kind')?.points ?? [];
      return {
        invoked: (invocations?.sum ?? 0) > 0,
        live: (kinds.find(({ attributes }) => attributes.kind === 'runtime')?.value ?? 0) > 0,
        of: all?.get('agentplatform_sessions')?.resource['service.name'],
      };
    };
    await expect.poll(counted, { timeout: 20_000 }).toEqual({ invoked: true, live: true, of: 'agentplatform' });
  });

  it('has the codes of failures, the waits for the database, and nothing that anybody said or any secret', async () => {
    const id = `3af7651916cd43dd8448eb211c80319${provider.length}`;
    const gone = `${arn}x`;
    await expect(invoke(sessionId('gone'), 'nothing', { traceParent: traceparent(id) }, gone)).rejects.toThrow();
    const { InvokeAgentRuntime: request } = await trace(id, 'InvokeAgentRuntime');
    expect(request).toMatchObject({ status: 0, attributes: { 'error.type': 'ResourceNotFoundException' } });
    const waits = receiver.named('database');
    expect(waits.length).toBeGreaterThan(0);
    for (const { attributes } of waits) expect(attributes['agentplatform.db.wait_ms']).toBeGreaterThan(0);

    const told = await invoke(sessionId('secrets'), 'nothing');
    await trace(told.headers.traceparent?.split('-')[1] ?? '', 'InvokeAgentRuntime');
    const sent = Buffer.concat(receiver.bytes).toString('latin1');
    // The controls: it would be seen, and the receiver was told its key in the header.
    expect(sent).toContain(arn);
    expect(receiver.requests[0]?.headers['api-key']).toBe(KEY);
    const secrets = [
      ...[KEY, 'sk-models-secret', 'the-words-of-a-user', platform.credentials.secretAccessKey],
      ...[platform.credentials.accessKeyId, told.headers.workloadaccesstoken ?? 'none', 'tenant=7'],
    ];
    for (const secret of secrets) expect(sent.includes(secret), secret).toBe(false);
    expect(platform.log()).not.toContain(KEY);
  });

  it.skipIf(!packages)('is one with an agent in Python, too', async () => {
    const folder = join(dir, 'python');
    // What boto3 needs, and of the hundreds of services that it knows this one.
    const unused = /__pycache__$|\/botocore\/data\/(?!bedrock-runtime(\/|$))[^/.]+$/;
    for (const name of ['boto3', 'botocore', 's3transfer', 'jmespath', 'dateutil', 'urllib3', 'six.py'])
      await cp(join(packages ?? '', name), join(folder, name), {
        recursive: true,
        filter: (path) => !unused.test(path),
      });
    await cp(join(root, 'tests/support/trace-python-agent/main.py'), join(folder, 'main.py'));
    const runtime = (await defaultPythonRuntime(folder)) as 'PYTHON_3_11';
    const { arn: python } = await deployAgent(platform, clients, { folder, runtime, entryPoint: ['main.py'] });
    const id = `4af7651916cd43dd8448eb211c80319${provider.length}`;
    const told = await invoke(sessionId('python'), 'traced', { traceParent: traceparent(id) }, python);
    expect(told.text).toBe('hello');
    const { invoke_agent: agent, Converse: back } = await trace(id, 'InvokeAgentRuntime');
    expect(told.headers.traceparent).toBe(`00-${id}-${agent?.spanId}-01`);
    expect(back?.parentId).toBe(agent?.spanId);
  });
});
