import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { errors } from '@agentplatform/contract';
import { WebSocket } from 'ws';
import type { Lease } from '../../../kernel/sessions/session.ts';
import { describeExit } from '../../../kernel/sessions/start-failure.ts';
import { closeSocket, pump, sendableCode } from './relay.ts';

/** How much of an agent's own refusal is shown. */
const SAID_CHARS = 2048;

export interface AgentDial {
  /** A flat list: name, value, name, value … */
  headers: string[];
  protocols: string[];
  maxMessageBytes: number;
  handshakeMs: number;
  signal: AbortSignal;
}

/** Opens `/ws` of the agent, not reading yet. Rejects with RuntimeClientError and the agent's own words when it refuses. */
export async function dialAgent(lease: Lease, port: number, dial: AgentDial): Promise<WebSocket> {
  const { host, port: reached } = lease.sandbox.address(port);
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < dial.headers.length; i += 2) headers[dial.headers[i] ?? ''] = dial.headers[i + 1] ?? '';
  const socket = new WebSocket(`ws://${host.includes(':') ? `[${host}]` : host}:${reached}/ws`, dial.protocols, {
    headers,
    maxPayload: dial.maxMessageBytes,
    perMessageDeflate: false,
    handshakeTimeout: dial.handshakeMs,
    followRedirects: false,
  });
  // From its first breath: an error that nobody hears would end the server.
  let failure: unknown;
  socket.on('error', (error) => {
    failure ??= error;
  });
  const refused = once(socket, 'unexpected-response', { signal: dial.signal });
  // In the very turn of the event: a first message may have come in one piece with the agent's answer, and a turn later it
  // would be handed to nobody.
  socket.once('open', () => socket.pause());
  const opened = once(socket, 'open', { signal: dial.signal }).then(() => undefined);
  refused.catch(() => undefined);
  opened.catch(() => undefined);
  try {
    const answer = await Promise.race([opened, refused.then(([, response]) => response as IncomingMessage)]);
    if (answer === undefined) return socket;
    const said = (await text(answer).catch(() => '')).trim().slice(0, SAID_CHARS);
    throw refusal(answer.statusCode ?? 0, said);
  } catch (error) {
    socket.terminate();
    if (dial.signal.aborted || error !== failure) throw error;
    const ended = await ending(lease);
    throw errors.runtimeClient(ended ?? `The agent could not be reached on /ws: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

function refusal(status: number, said: string): Error {
  return errors.runtimeClient(`The agent answered a WebSocket with status ${status}${said ? `: ${said}` : ''}.`, {
    ...(status < 500 ? { remedy: 'Serve WebSockets at /ws: with the SDKs, register a websocket handler.' } : {}),
    members: { agentStatusCode: status },
  });
}

/** Lets client and agent talk until one of them, or the session, ends; close codes are passed on. */
export function join(client: WebSocket, agent: WebSocket, lease: Lease): void {
  pump(client, agent);
  pump(agent, client);
  let tooLarge: string | undefined;
  agent.on('error', (error) => {
    if ('code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH')
      tooLarge = 'the agent sent a message above the limit';
  });
  client.on('error', () => undefined);
  client.once('close', (code, reason) => {
    closeSocket(agent, code === 1005 ? undefined : (sendableCode(code) ?? 1001), reason.toString());
  });
  agent.once('close', (code, reason) => {
    if (code === 1005) return closeSocket(client, undefined, '');
    const passed = sendableCode(code);
    if (passed !== undefined && tooLarge === undefined) return closeSocket(client, passed, reason.toString());
    void ending(lease).then((ended) =>
      closeSocket(client, 1011, tooLarge ?? ended ?? 'the agent broke the connection'),
    );
  });
  agent.resume();
}

/** Why the agent is gone, in a sentence; undefined while it is there. */
async function ending(lease: Lease): Promise<string | undefined> {
  const reason = lease.session.endReason;
  if (reason !== undefined && reason !== 'exited') return `The session ended (${reason}).`;
  const exited = await Promise.race([
    lease.sandbox.exited.then(() => true),
    new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 500).unref()),
  ]);
  return exited ? describeExit(lease.sandbox) : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
