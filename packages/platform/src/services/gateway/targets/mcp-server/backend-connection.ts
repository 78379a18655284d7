import { Client, type ClientOptions, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/client';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Outbound } from '../../../../kernel/outbound/index.ts';
import { untilAborted } from '../../../../kernel/until-aborted.ts';
import type { Credential } from '../../outbound/credential.ts';
import type { JsonObject } from '../../tools/index.ts';
import { isObject } from '../../tools/json-pointer.ts';
import type { ClientCapabilities, ClientRequest } from '../target-kind.ts';
import { BackendTransport } from './backend-transport.ts';
import { currentExchange, Exchange } from './exchange.ts';

/** The destination of a connection, and the credential that it uses. */
export interface BackendPlace {
  targetArn: string;
  /** Revision of the target. */
  revision: number;
  endpoint: string;
  /** Of the handshake, and of who may share the connection; what is sent on it has the credential of its exchange. */
  credential: Credential;
  /** PEM of an authority that its certificates are believed by, beside the usual ones. */
  ca?: string | undefined;
}

export interface BackendConnectionDeps {
  outbound: Outbound;
  clock: Clock;
  /** Version of the platform. */
  version: string;
}

const HANDSHAKE_TIMEOUT_MS = 20_000;
/** Limits of the handshake, in which a server describes itself. */
const HANDSHAKE = { maxBytes: 256 * 1024, maxRequests: 16 };

/** One connection to an MCP server: the version is agreed once, and where the server has sessions, one is open. */
export class BackendConnection {
  readonly client: Client;
  readonly #transport: BackendTransport;

  private constructor(client: Client, transport: BackendTransport) {
    this.client = client;
    this.#transport = transport;
  }

  /** Agrees on a version: 2026-07-28, else those before it. Rejects with what went wrong first on the way. */
  static async open(
    { endpoint, credential, ca }: BackendPlace,
    { headers, query, client: asked }: Pick<Exchange, 'headers' | 'query' | 'client'>,
    { outbound, clock, version }: BackendConnectionDeps,
  ): Promise<BackendConnection> {
    // Its own bound of calls at once: no other target waits for them.
    const transport = new BackendTransport(new URL(endpoint), { outbound: outbound.apart(), credential, ca });
    const client = new Client(
      { name: 'agentplatform-gateway', version },
      {
        versionNegotiation: { mode: 'auto' },
        inputRequired: { autoFulfill: false },
        capabilities: served(asked?.capabilities),
      },
    );
    passOn(client, asked?.capabilities);
    // What fails, fails the request that it belongs to.
    client.onerror = () => undefined;
    const exchange = new Exchange({ ...HANDSHAKE, credential, headers, query });
    const late = new AbortController();
    const cancel = clock.after(HANDSHAKE_TIMEOUT_MS, () => late.abort(new HandshakeTimeout()));
    try {
      const connecting = exchange.during(() => client.connect(transport, { timeout: HANDSHAKE_TIMEOUT_MS }));
      await untilAborted(connecting, late.signal);
      return new BackendConnection(client, transport);
    } catch (error) {
      exchange.end();
      void client.close().catch(() => undefined);
      throw exchange.failure ?? error;
    } finally {
      cancel();
    }
  }

  /** Whether the server keeps a session for it. */
  get hasSession(): boolean {
    return this.#transport.sessionId !== undefined;
  }

  /** Whether input can be asked for in answers (2026-07-28). */
  get modern(): boolean {
    return this.client.getProtocolEra() === 'modern';
  }

  async close(): Promise<void> {
    await this.client.close().catch(() => undefined);
  }
}

/** What servers of the older versions may ask for, by the capability of the client. */
const REQUESTS: Readonly<Record<keyof ClientCapabilities, ClientRequest>> = {
  elicitation: 'elicitation/create',
  sampling: 'sampling/createMessage',
  roots: 'roots/list',
};

/** What a server is told that it can ask for. That the list of roots has changed is not passed on. */
function served({ elicitation, sampling, roots }: ClientCapabilities = {}): NonNullable<ClientOptions['capabilities']> {
  return {
    ...(isObject(elicitation) && { elicitation: modes(elicitation) }),
    ...(isObject(sampling) && { sampling: sampling.tools === undefined ? {} : { tools: {} } }),
    ...(roots !== undefined && { roots: {} }),
  };
}

/** A client that names no mode has forms. */
function modes({ form, url }: JsonObject): Record<string, Record<string, never>> {
  return { ...((form !== undefined || url === undefined) && { form: {} }), ...(url !== undefined && { url: {} }) };
}

/** Passes what the server asks and says on to the client whose request it is at work on. */
function passOn(client: Client, capabilities: ClientCapabilities = {}): void {
  client.setNotificationHandler('notifications/message', ({ params }) => currentExchange()?.client?.log(params));
  for (const name of ['elicitation', 'sampling', 'roots'] as const) {
    if (capabilities[name] === undefined) continue;
    const method = REQUESTS[name];
    client.setRequestHandler(method, ({ params = {} }, { mcpReq }) => {
      const asked = currentExchange()?.client;
      if (asked) return asked.ask({ method, params }, mcpReq.signal);
      throw new ProtocolError(ProtocolErrorCode.InvalidRequest, 'There is no client that could be asked now.');
    });
  }
}

/** A server did not answer the handshake in time. */
export class HandshakeTimeout extends Error {
  override readonly name = 'HandshakeTimeout';

  constructor() {
    super(`The server did not answer the handshake within ${HANDSHAKE_TIMEOUT_MS / 1000} s.`);
  }
}
