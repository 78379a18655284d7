import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

export interface Seen {
  method: string;
  path: string;
  /** As it was sent, not decoded. */
  rawPath: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
}

type Handler = (request: Seen, response: ServerResponse, match: RegExpExecArray) => void;

interface Runtime {
  id: string;
  name: string;
  version: number;
  definition: Record<string, unknown>;
  /** How often it is still shown as being made. */
  busy: number;
}

const account = '123456789012';

/** A scripted stand-in for a platform, as far as the command line tool talks to one. Records what it is asked. */
export class FakePlatform {
  readonly seen: Seen[] = [];
  readonly objects = new Map<string, Buffer>();
  readonly runtimes: Runtime[] = [];
  /** Tried before the routes below; the first whose `METHOD /path` matches answers. */
  readonly overrides: [RegExp, Handler][] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #hasBucket = false;

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** Writes what a server leaves in its data directory: `.agentplatform/connection.json` and the credentials. */
  async connect(folder: string): Promise<void> {
    const data = join(folder, '.agentplatform');
    await mkdir(data, { recursive: true });
    const credentialsFile = join(data, 'credentials');
    await writeFile(
      credentialsFile,
      '[agentplatform]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n',
    );
    const connection = {
      ready: true,
      endpoint: this.endpoint,
      credentialsFile,
      profile: 'agentplatform',
      region: 'eu-test-1',
      accountId: account,
      defaultRoleArn: `arn:aws:iam::${account}:role/default`,
      isolation: 'container',
    };
    await writeFile(join(data, 'connection.json'), JSON.stringify(connection));
  }

  on(route: RegExp, handler: Handler): void {
    this.overrides.push([route, handler]);
  }

  requests(route: RegExp): Seen[] {
    return this.seen.filter(({ method, path }) => route.test(`${method} ${path}`));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const path = decodeURIComponent(url.pathname);
    const bytes = await buffer(request);
    const method = request.method ?? '';
    const rawPath = url.pathname;
    const seen: Seen = {
      method,
      path,
      rawPath,
      query: url.searchParams,
      headers: request.headers,
      body: bytes.toString(),
    };
    this.seen.push(seen);
    for (const [route, handler] of [...this.overrides, ...this.#routes(bytes)]) {
      const match = route.exec(`${method} ${path}`);
      if (match) return handler(seen, response, match);
    }
    fail(response, 404, 'ResourceNotFoundException', `no route ${method} ${path}`);
  }

  #routes(bytes: Buffer): [RegExp, Handler][] {
    const found = (id: string | undefined): Runtime | undefined => this.runtimes.find((runtime) => runtime.id === id);
    const known =
      (handler: (runtime: Runtime, request: Seen, response: ServerResponse) => void): Handler =>
      (request, response, match) => {
        const runtime = found(match[1]);
        if (runtime) handler(runtime, request, response);
        else fail(response, 404, 'ResourceNotFoundException', `runtime ${match[1]} does not exist`);
      };
    return [
      [/^PUT \/runtimes\/$/, (request, response) => json(response, 202, this.#create(JSON.parse(request.body)))],
      [/^POST \/runtimes\/$/, (_, response) => json(response, 200, { agentRuntimes: this.runtimes.map(shown) })],
      [/^GET \/runtimes\/([^/]+)\/$/, known((runtime, _, response) => json(response, 200, this.#poll(runtime)))],
      [
        /^PUT \/runtimes\/([^/]+)\/$/,
        known((runtime, request, response) => {
          runtime.definition = JSON.parse(request.body);
          runtime.version++;
          json(response, 202, shown(runtime));
        }),
      ],
      [
        /^DELETE \/runtimes\/([^/]+)\/$/,
        known((runtime, _, response) => {
          this.runtimes.splice(this.runtimes.indexOf(runtime), 1);
          json(response, 202, { status: 'DELETING', agentRuntimeId: runtime.id });
        }),
      ],
      [
        /^POST \/runtimes\/([^/]+)\/versions\/$/,
        known((runtime, _, response) => json(response, 200, { agentRuntimes: [shown(runtime)] })),
      ],
      [
        /^POST \/runtimes\/([^/]+)\/runtime-endpoints\/$/,
        known((runtime, _, response) =>
          json(response, 200, {
            runtimeEndpoints: [{ name: 'DEFAULT', status: 'READY', liveVersion: String(runtime.version) }],
          }),
        ),
      ],
      [
        /^POST \/runtimes\/.*\/invocations$/,
        (request, response) => {
          const session = String(request.headers['x-amzn-bedrock-agentcore-runtime-session-id']);
          response.writeHead(200, {
            'content-type': 'text/event-stream',
            'x-amzn-bedrock-agentcore-runtime-session-id': session,
          });
          response.end('data: "Hello "\n\ndata: "you\\n"\n\ndata: {"n":1}\n\ndata: "bye"\n\n');
        },
      ],
      [/^POST \/runtimes\/.*\/stopruntimesession$/, (_, response) => json(response, 200, {})],
      [
        /^HEAD \/s3\/agentplatform-deploy\/(.+)$/,
        (_, response, match) => response.writeHead(this.objects.has(match[1] ?? '') ? 200 : 404).end(),
      ],
      [
        /^PUT \/s3\/agentplatform-deploy\/?$/,
        (_, response) => {
          this.#hasBucket = true;
          response.end();
        },
      ],
      [
        /^PUT \/s3\/agentplatform-deploy\/(.+)$/,
        (_, response, match) => {
          if (!this.#hasBucket) {
            response.writeHead(404, { 'content-type': 'application/xml' });
            response.end('<Error><Code>NoSuchBucket</Code><Message>no bucket</Message></Error>');
            return;
          }
          this.objects.set(match[1] ?? '', bytes);
          response.writeHead(200, { etag: '"1"' }).end();
        },
      ],
      [/^GET \/_platform\/runtimes\/([^/]+)\/sessions$/, (_, response) => json(response, 200, { sessions: [] })],
    ];
  }

  #create(input: Record<string, unknown>): object {
    const name = String(input.agentRuntimeName);
    const runtime = { id: `${name}-abcdefghij`, name, version: 1, definition: input, busy: 1 };
    this.runtimes.push(runtime);
    return shown(runtime);
  }

  #poll(runtime: Runtime): object {
    const busy = runtime.busy-- > 0;
    return { ...runtime.definition, ...shown(runtime), ...(busy ? { status: 'CREATING' } : {}) };
  }
}

function shown(runtime: Runtime): object {
  return {
    agentRuntimeId: runtime.id,
    agentRuntimeArn: `arn:aws:bedrock-agentcore:eu-test-1:${account}:runtime/${runtime.id}`,
    agentRuntimeName: runtime.name,
    agentRuntimeVersion: String(runtime.version),
    status: 'READY',
    lastUpdatedAt: '2026-11-21T12:00:00Z',
    createdAt: '2026-11-21T12:00:00Z',
  };
}

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

export function fail(response: ServerResponse, status: number, name: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': name });
  response.end(JSON.stringify({ message }));
}
