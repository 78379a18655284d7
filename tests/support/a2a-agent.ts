import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import {
  A2A_VERSION_HEADER,
  AGENT_CARD_PATH,
  AgentCard,
  formatSSEEvent,
  SSE_HEADERS,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent,
} from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import {
  type Backend,
  startBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';

export interface A2aAgent extends Omit<Backend, 'url'> {
  /** Where clients reach it: what its card says. */
  says(address: string): void;
  origin: string;
  /** Its task works until then. */
  finish(): void;
  /** How many of its streams were left by their reader. */
  left(): number;
}

/** An A2A agent of the official package on the loopback interface. A task of it works until the test says that it may end. */
export async function startA2aAgent(): Promise<A2aAgent> {
  const finished = Promise.withResolvers<void>();
  let address = '';
  let left = 0;
  const card = (): AgentCard =>
    AgentCard.fromJSON({
      ...{ name: 'tea', description: 'Makes tea', version: '1.0.0', capabilities: { streaming: true } },
      supportedInterfaces: [{ url: address, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      ...{ defaultInputModes: ['text'], defaultOutputModes: ['text'] },
    });
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    if (req.url === `/${AGENT_CARD_PATH}`) return answer(res, AgentCard.toJSON(card()));
    const rpc = new JsonRpcTransportHandler(
      new DefaultRequestHandler(card(), new InMemoryTaskStore(), executor(finished.promise)),
    );
    const requestedVersion = String(req.headers[A2A_VERSION_HEADER.toLowerCase()]);
    const asked = (await json(req)) as Record<string, unknown>;
    const answered = await rpc.handle(asked, new ServerCallContext({ requestedVersion }));
    if (!(Symbol.asyncIterator in answered)) return answer(res, answered);
    res.writeHead(200, SSE_HEADERS);
    res.once('close', () => {
      if (!res.writableFinished) left += 1;
    });
    for await (const event of answered) res.write(formatSSEEvent(event));
    res.end();
  };
  const { url, ...backend } = await startBackend((req, res) => void serve(req, res));
  const { origin } = new URL(url);
  address = origin;
  return {
    ...{ ...backend, origin, left: () => left, finish: () => finished.resolve() },
    says: (told) => {
      address = told;
    },
  };
}

function answer(res: ServerResponse, value: unknown): void {
  res.setHeader('content-type', 'application/json').end(JSON.stringify(value));
}

/** Says that it works, and what it made once it may end. */
function executor(finished: Promise<void>): AgentExecutor {
  return {
    async execute({ taskId, contextId, userMessage }, bus) {
      const [part] = userMessage.parts;
      const asked = part?.content?.$case === 'text' ? part.content.value : '';
      const of = { taskId, contextId };
      bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' } })));
      await finished;
      const artifact = { artifactId: 'a', parts: [{ text: `tea for ${asked}` }] };
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ ...of, artifact })));
      const completed = { ...of, status: { state: 'TASK_STATE_COMPLETED' } };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(completed)));
      bus.finished();
    },
    async cancelTask() {},
  };
}

/** Makes clients of the official package, which reach agents as `fetch` does, of 1.0 and of 0.3. */
export function a2aClients(fetchImpl: typeof fetch): ClientFactory {
  const options = { fetchImpl, legacyCompat: { enabled: true } };
  return new ClientFactory({
    transports: [new JsonRpcTransportFactory(options)],
    cardResolver: new DefaultAgentCardResolver(options),
  });
}
