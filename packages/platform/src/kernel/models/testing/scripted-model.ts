import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Provider } from '../model-config.ts';
import { WIRES } from './wires.ts';

/** What a scripted model says next, in the words of no provider. */
export interface Script {
  thought?: { text: string; signature: string };
  text?: string;
  calls?: readonly { id: string; name: string; input: object }[];
  stop?: 'end' | 'tool-use' | 'max-tokens';
  usage?: { input: number; output: number; cacheRead: number };
}

/** A request as it came. */
export interface Asked {
  path: string;
  headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: each provider's own shape, which the tests look into
  body: any;
}

/** What the server does instead of answering: an answer of its own, or whatever a function makes of the response. */
export type Misbehaviour = { status: number; body: string } | ((response: ServerResponse) => void);

export interface ScriptedModel {
  /** The base URL of the provider's API. */
  url: string;
  asked: Asked[];
  /** Said in this order; the last one again and again. */
  script: Script[];
  misbehave: Misbehaviour | undefined;
  /** Sends this many pieces of a stream and then cuts the connection. */
  cutAfter: number | undefined;
  /** Answers under way. */
  open(): number;
  close(): Promise<void>;
}

/** A server that speaks a provider's API and says what it is told. */
export async function startScriptedModel(provider: Provider): Promise<ScriptedModel> {
  const wire = WIRES[provider];
  const open = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    open.add(response);
    response.once('close', () => open.delete(response));
    const { url: path = '', headers } = request;
    // biome-ignore lint/suspicious/noExplicitAny: as of `Asked`
    const body: any = await json(request);
    model.asked.push({ path, headers, body });
    const { misbehave } = model;
    if (typeof misbehave === 'function') return misbehave(response);
    if (misbehave) return void response.writeHead(misbehave.status, JSON_TYPE).end(misbehave.body);
    const script = (model.script.length > 1 ? model.script.shift() : model.script[0]) ?? {};
    if (!wire.streams(path, body))
      return void response.writeHead(200, JSON_TYPE).end(JSON.stringify(wire.whole(script)));
    response.writeHead(200, { 'content-type': wire.streamType });
    const pieces = wire.pieces(script);
    for (const piece of pieces.slice(0, model.cutAfter)) response.write(piece);
    if (model.cutAfter === undefined) response.end();
    else response.write('', () => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const model: ScriptedModel = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${wire.base}`,
    asked: [],
    script: [],
    misbehave: undefined,
    cutAfter: undefined,
    open: () => open.size,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return model;
}

const JSON_TYPE = { 'content-type': 'application/json' };
