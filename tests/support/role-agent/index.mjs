// An agent for tests that calls the platform with an AWS SDK, which it gives no configuration at all.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import {
  BatchCreateMemoryRecordsCommand,
  BatchDeleteMemoryRecordsCommand,
  BatchUpdateMemoryRecordsCommand,
  BedrockAgentCoreClient,
  CreateEventCommand,
  DeleteMemoryRecordCommand,
  GetCodeInterpreterSessionCommand,
  GetEventCommand,
  GetMemoryRecordCommand,
  GetResourceApiKeyCommand,
  InvokeCodeInterpreterCommand,
  ListActorsCommand,
  ListCodeInterpreterSessionsCommand,
  ListEventsCommand,
  ListMemoryRecordsCommand,
  ListSessionsCommand,
  RetrieveMemoryRecordsCommand,
  StartCodeInterpreterSessionCommand,
  StopCodeInterpreterSessionCommand,
  StopRuntimeSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';

const client = new BedrockAgentCoreClient({ maxAttempts: 1 });
const s3 = new S3Client({ maxAttempts: 1 });

const commands = {
  BatchCreateMemoryRecordsCommand,
  BatchDeleteMemoryRecordsCommand,
  BatchUpdateMemoryRecordsCommand,
  CreateEventCommand,
  DeleteMemoryRecordCommand,
  GetCodeInterpreterSessionCommand,
  GetEventCommand,
  GetMemoryRecordCommand,
  GetResourceApiKeyCommand,
  InvokeCodeInterpreterCommand,
  ListActorsCommand,
  ListCodeInterpreterSessionsCommand,
  ListEventsCommand,
  ListMemoryRecordsCommand,
  ListSessionsCommand,
  RetrieveMemoryRecordsCommand,
  StartCodeInterpreterSessionCommand,
  StopCodeInterpreterSessionCommand,
  StopRuntimeSessionCommand,
};

const acts = {
  async event({ memoryId, actorId = 'ada' }) {
    const payload = [{ conversational: { role: 'USER', content: { text: 'hello' } } }];
    const input = { memoryId, actorId, sessionId: 's', eventTimestamp: new Date(), payload };
    return { eventId: (await client.send(new CreateEventCommand(input))).event?.eventId };
  },
  async object({ bucket, key }) {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
    return { text: await Body?.transformToString() };
  },
  /** One operation of the data plane, by the name of its command; an event stream is read to its end. */
  async call({ command, input }) {
    const dated = JSON.parse(JSON.stringify(input), (name, value) =>
      name.toLowerCase().endsWith('timestamp') ? new Date(value) : value,
    );
    const { $metadata, stream, ...answer } = await client.send(new commands[command](dated));
    if (!stream) return answer;
    const events = [];
    for await (const event of stream) events.push(event);
    return { ...answer, events };
  },
  /** The key of a provider, by the workload access token of the request. */
  async key({ provider: resourceCredentialProviderName }, { headers }) {
    const { workloadaccesstoken: workloadIdentityToken } = headers;
    return client.send(new GetResourceApiKeyCommand({ resourceCredentialProviderName, workloadIdentityToken }));
  },
  async credentials() {
    return { ...(await client.config.credentials()) };
  },
  async env() {
    return process.env;
  },
  async fetch({ url, headers }) {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(3000) });
    return { status: answer.status, text: await answer.text() };
  },
};

const server = createServer(async (request, response) => {
  if (request.url === '/ping') return response.end('{"status":"Healthy"}');
  const act = await json(request);
  const answer = await acts[act.do]?.(act, request).catch((error) =>
    error instanceof Error ? { error: error.name, message: error.message } : { error: String(error) },
  );
  response.setHeader('content-type', 'application/json');
  return response.end(JSON.stringify(answer ?? {}));
});
server.listen(8080, '0.0.0.0');
