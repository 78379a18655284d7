import { randomBytes } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { errors, ServiceError } from '@agentplatform/contract';
import { acceptOf, type Upgraded } from '../../../kernel/http/index.ts';
import { describeExit, exitedSoon, type Lease } from '../../../kernel/sessions/index.ts';

/** How much of an agent's own refusal is shown. */
const SAID_CHARS = 2048;

export interface AgentDial {
  /** Path and query. */
  path: string;
  /** A flat list: name, value, name, value … With the `Host` that it is asked for, unless that is its own address. */
  headers: string[];
  protocols: string[];
  handshakeMs: number;
  signal: AbortSignal;
}

/** A WebSocket of an agent, and the subprotocol that it chose. */
export interface AgentStream extends Upgraded {
  protocol: string | undefined;
}

/** Opens a WebSocket of the agent, not reading yet. Rejects with RuntimeClientError and the agent's own words when it refuses. */
export async function dialAgent(lease: Lease, port: number, dial: AgentDial): Promise<AgentStream> {
  const { host, port: reached } = lease.sandbox.address(port);
  const key = randomBytes(16).toString('base64');
  const offer = dial.protocols.length > 0 ? ['sec-websocket-protocol', dial.protocols.join(',')] : [];
  const handshake = ['connection', 'Upgrade', 'upgrade', 'websocket', 'sec-websocket-version', '13', ...offer];
  const authority = `${host.includes(':') ? `[${host}]` : host}:${reached}`;
  const named = dial.headers[0] === 'host' ? [] : ['host', authority];
  const call = request({
    host,
    port: reached,
    path: dial.path,
    agent: false,
    headers: [...named, ...handshake, 'sec-websocket-key', key, ...dial.headers],
    signal: dial.signal,
  });
  const late = setTimeout(() => call.destroy(new Error('the handshake took too long')), dial.handshakeMs);
  try {
    const answer = await new Promise<{ response: IncomingMessage; upgraded?: Upgraded }>((resolve, reject) => {
      call.once('upgrade', (response, socket: Socket, head) => {
        // From its first breath: an error that nobody hears would end the server.
        socket.on('error', () => socket.destroy());
        socket.setNoDelay(true);
        socket.pause();
        resolve({ response, upgraded: { socket, head } });
      });
      call.once('response', (response) => resolve({ response }));
      call.on('error', reject);
      call.end();
    });
    const { response, upgraded } = answer;
    if (upgraded) return accepted(response, upgraded, key, dial.protocols);
    const said = (await text(response).catch(() => '')).trim().slice(0, SAID_CHARS);
    call.destroy();
    throw refusal(response.statusCode ?? 0, said, pathOf(dial));
  } catch (error) {
    call.destroy();
    if (dial.signal.aborted || isAnswered(error)) throw error;
    const ended = await endingOf(lease);
    throw errors.runtimeClient(ended ?? `The agent could not be reached on ${pathOf(dial)}: ${messageOf(error)}.`, {
      cause: error,
    });
  } finally {
    clearTimeout(late);
  }
}

/** Holds the agent to RFC 6455, 4.1. */
function accepted(response: IncomingMessage, upgraded: Upgraded, key: string, offered: string[]): AgentStream {
  const { headers } = response;
  const protocol = headers['sec-websocket-protocol'];
  const wrong =
    headers['sec-websocket-accept'] !== acceptOf(key)
      ? 'its answer is not to this handshake'
      : protocol !== undefined && !offered.includes(protocol)
        ? 'it chose a subprotocol that was not offered'
        : headers['sec-websocket-extensions'] !== undefined
          ? 'it chose an extension that was not offered'
          : undefined;
  if (wrong === undefined) return { ...upgraded, protocol };
  upgraded.socket.destroy();
  throw new Error(wrong);
}

function pathOf({ path }: AgentDial): string {
  return path.split('?', 1)[0] ?? path;
}

function refusal(status: number, said: string, path: string): Error {
  return errors.runtimeClient(`The agent answered a WebSocket with status ${status}${said ? `: ${said}` : ''}.`, {
    ...(status < 500 ? { remedy: `Serve WebSockets at ${path}.` } : {}),
    members: { agentStatusCode: status },
  });
}

/** Why the agent is gone, in a sentence; undefined while it is there. */
export async function endingOf(lease: Lease): Promise<string | undefined> {
  const reason = lease.session.endReason;
  if (reason !== undefined && reason !== 'exited') return `The session ended (${reason}).`;
  return (await exitedSoon(lease.sandbox)) ? describeExit(lease.sandbox) : undefined;
}

function isAnswered(error: unknown): boolean {
  return error instanceof ServiceError;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
