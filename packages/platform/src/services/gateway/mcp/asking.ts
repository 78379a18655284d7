import {
  type BaseContext,
  CLIENT_CAPABILITIES_META_KEY,
  type McpRequestContext,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { WITHIN_CALL_MS } from '../call-times.ts';
import { type Gateway, streams } from '../gateways/gateway.ts';
import type { Asking, ClientCapabilities, SessionClient, ToolCaller } from '../targets/target-kind.ts';
import { isObject } from '../tools/json-pointer.ts';

/** Who makes a request. */
export interface Asker {
  caller: ToolCaller;
  /** Aborted when the client hangs up. */
  gone: AbortSignal;
}

/** The session that a request belongs to. */
export interface AskingSession {
  server: Server;
  gateway: Gateway;
}

/** What a request asks of targets, and how its client is told and asked meanwhile. */
export function askingOf(
  context: ServerContext,
  { caller, gone }: Asker,
  era: McpRequestContext['era'],
  session: AskingSession | undefined,
): Asking {
  const { mcpReq } = context;
  const progressToken = mcpReq._meta?.progressToken;
  // Only while an answer streams can anything be asked on the way to it.
  const asks = session !== undefined && streams(session.gateway);
  const capabilities = asks ? (session.server.getClientCapabilities() ?? {}) : capabilitiesOf(mcpReq.envelope ?? {});
  return {
    caller,
    messageId: mcpReq.id,
    signal: AbortSignal.any([mcpReq.signal, gone]),
    ...(progressToken !== undefined && {
      progress: (progress) =>
        void mcpReq
          .notify({ method: 'notifications/progress', params: { ...progress, progressToken } })
          // A client that has disconnected gets no message.
          .catch(() => undefined),
    }),
    ...((era === 'modern' || asks) && {
      input: { capabilities, responses: mcpReq.inputResponses, state: mcpReq.requestState<string>() },
    }),
    ...(asks && { session: sessionClient(context, capabilities) }),
  };
}

function sessionClient({ sessionId = '', mcpReq }: ServerContext, capabilities: ClientCapabilities): SessionClient {
  return {
    ...{ id: sessionId, capabilities },
    ask: ({ method, params }, signal) => mcpReq.send({ method, params }, { signal, timeout: WITHIN_CALL_MS }),
    log: ({ level, data, logger }) => void mcpReq.log(level, data, logger).catch(() => undefined),
  };
}

/** What the client says that it can be asked for. */
function capabilitiesOf(envelope: NonNullable<BaseContext['mcpReq']['envelope']>): ClientCapabilities {
  const said: unknown = Reflect.get(envelope, CLIENT_CAPABILITIES_META_KEY);
  return isObject(said) ? said : {};
}
