import { randomBytes } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { acceptOf } from './handshake.ts';
import type { Upgraded } from './spliced-stream.ts';

/** How much of a refusal's text is kept. */
const SAID_CHARS = 2048;

export interface UpgradeDial {
  /** Where the connection goes. */
  address: { host: string; port: number };
  /** Path and query. */
  path: string;
  /** A flat list: name, value, name, value … With the `Host` that it is asked for, unless that is its own address. */
  headers: string[];
  protocols: string[];
  handshakeMs: number;
  signal: AbortSignal;
}

/** A WebSocket of a server inside a sandbox, and the subprotocol that it chose. */
export interface DialedStream extends Upgraded {
  protocol: string | undefined;
}

/** The server answered, and not with a WebSocket. */
export class UpgradeRefused extends Error {
  readonly status: number;
  /** What it said, cut. */
  readonly said: string;
  constructor(status: number, said: string) {
    super(`the handshake was answered with status ${status}`);
    this.name = 'UpgradeRefused';
    this.status = status;
    this.said = said;
  }
}

/** Opens a WebSocket of a server inside a sandbox, not reading yet. Rejects with `UpgradeRefused`, or with why it cannot be reached. */
export async function dialUpgrade(dial: UpgradeDial): Promise<DialedStream> {
  const { host, port } = dial.address;
  const key = randomBytes(16).toString('base64');
  const offer = dial.protocols.length > 0 ? ['sec-websocket-protocol', dial.protocols.join(',')] : [];
  const handshake = ['connection', 'Upgrade', 'upgrade', 'websocket', 'sec-websocket-version', '13', ...offer];
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const named = dial.headers[0] === 'host' ? [] : ['host', authority];
  const call = request({
    host,
    port,
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
    throw new UpgradeRefused(response.statusCode ?? 0, said);
  } catch (error) {
    call.destroy();
    throw error;
  } finally {
    clearTimeout(late);
  }
}

/** Holds the server to RFC 6455, 4.1. */
function accepted(response: IncomingMessage, upgraded: Upgraded, key: string, offered: string[]): DialedStream {
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
