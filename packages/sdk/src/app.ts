import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { sendJson, sendResult } from './answer.ts';
import { contextFrom, type InvocationContext, runInContext } from './context.ts';
import { reseedIfCopied } from './copies.ts';
import { isStream, sendEvents } from './event-stream.ts';
import { Health, type PingHandler, type PingStatus, type RunningTask } from './health.ts';
import { decodePayload, readBody } from './read-body.ts';
import { messageOf, RequestError } from './request-error.ts';
import { type RunningApp, serve } from './serve.ts';
import { serveWebSockets, type WebSocketHandler } from './websocket.ts';

/** A JSON object as it arrives; its fields are the agent's own affair. */
export type Payload = Record<string, unknown>;

/** Serves one request. Returns a string, anything JSON can hold, bytes, or an async iterable whose chunks are streamed. */
export type Entrypoint<Input> = (payload: Input, context: InvocationContext) => unknown;

export interface AppOptions<Input> {
  /** Checks the payload (a schema's `parse`, for example); what it throws is answered with 400. Default: a JSON object is required. */
  parse?: (payload: unknown) => Input | Promise<Input>;
  /** Largest accepted payload in bytes; default 100,000,000, the platform's own limit. */
  maxPayloadBytes?: number;
  /** Where failures are reported; default `console.error`, which is what `agentcore logs` shows. */
  onError?: (message: string, error: unknown) => void;
  /** Milliseconds since the epoch; default `Date.now`. */
  now?: () => number;
}

export interface RunOptions {
  /** Default: the environment's PORT, else 8080. 0 picks a free one. */
  port?: number;
  /** Default 0.0.0.0. */
  host?: string;
  /** Milliseconds that requests in flight get at SIGTERM before they are cut; default 5000. */
  shutdownGraceMs?: number;
}

/**
 * Wraps an entrypoint function into the HTTP contract of the platform's Runtime: `POST /invocations` and `GET /ping`
 * (spec/agent-platform.md, "Runtime container contract").
 */
export class AgentPlatformApp<Input = Payload> {
  #entrypoint: Entrypoint<Input> | undefined;
  #websocket: WebSocketHandler | undefined;
  readonly #parse: (payload: unknown) => Input | Promise<Input>;
  readonly #limit: number;
  readonly #report: (message: string, error: unknown) => void;
  readonly #health: Health;

  constructor(entrypoint?: Entrypoint<Input>, options: AppOptions<Input> = {}) {
    this.#entrypoint = entrypoint;
    // Without `parse`, Input is Payload by its default, which this check makes true.
    this.#parse = options.parse ?? ((payload) => requireObject(payload) as Input);
    this.#limit = options.maxPayloadBytes ?? 100_000_000;
    this.#report = options.onError ?? ((message, error) => console.error(message, error));
    this.#health = new Health(options.now ?? Date.now, this.#report);
  }

  /** Sets the function that serves invocations and returns it. */
  entrypoint<Handler extends Entrypoint<Input>>(handler: Handler): Handler {
    this.#entrypoint = handler;
    return handler;
  }

  /** Sets the function that serves `/ws`; it needs the package `ws`. Without it there is no such route. */
  websocket<Handler extends WebSocketHandler>(handler: Handler): Handler {
    this.#websocket = handler;
    return handler;
  }

  /** Sets the function that decides the ping status, above running tasks and below a forced status. */
  ping(handler: PingHandler): void {
    this.#health.use(handler);
  }

  /** Answers every ping with `status` until called with undefined. */
  forcePingStatus(status: PingStatus | undefined): void {
    this.#health.force(status);
  }

  /** Notes a piece of background work, so that the session counts as busy until `completeAsyncTask` is called with the id. */
  addAsyncTask(name: string): number {
    return this.#health.add(name);
  }

  /** Ends a piece of background work; false when no such work is known. */
  completeAsyncTask(id: number): boolean {
    return this.#health.complete(id);
  }

  /** Background work that is running. */
  asyncTasks(): RunningTask[] {
    return this.#health.tasks();
  }

  /** Wraps an async function so that the session counts as busy while a call of it runs. */
  asyncTask<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result> {
    return async (...args) => {
      const id = this.addAsyncTask(work.name || 'task');
      try {
        return await work(...args);
      } finally {
        this.completeAsyncTask(id);
      }
    };
  }

  /** Listens until SIGTERM, SIGINT or `close()`. Rejects when the port cannot be had or no entrypoint is set. */
  async run(options: RunOptions = {}): Promise<RunningApp> {
    if (!this.#entrypoint && !this.#websocket)
      throw new Error('No entrypoint: pass a function to new AgentPlatformApp() or to app.entrypoint().');
    const server = createServer((request, response) => void this.#route(request, response));
    // One connection that could not be taken is no end of the others. Before it listens `run` rejects.
    server.on('error', (error) => server.listening && this.#report('a connection could not be taken:', error));
    // The platform pings a copy before anybody else reaches it.
    server.prependListener('request', reseedIfCopied);
    const onClose = this.#websocket ? await serveWebSockets(server, this.#websocket, this.#report) : undefined;
    return serve(server, {
      port: options.port ?? portFromEnvironment(),
      host: options.host ?? '0.0.0.0',
      graceMs: options.shutdownGraceMs ?? 5000,
      onClose,
    });
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('The caller went away.'));
    });
    response.on('error', (error) => gone.abort(error));
    try {
      await this.#serve(request, response, gone.signal);
    } catch (error) {
      this.#fail(request, response, error, gone.signal);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const path = request.url?.split('?')[0];
    if (path === '/ping') {
      allow(request, response, ['GET', 'HEAD']);
      return sendJson(response, 200, await this.#health.report());
    }
    if (path !== '/invocations')
      throw new RequestError(404, 'Not found; an agent serves POST /invocations and GET /ping.');
    allow(request, response, ['POST']);
    if (!this.#entrypoint) throw new RequestError(404, 'This agent serves only /ws; it has no entrypoint.');
    const context = contextFrom(request.headers, signal);
    const payload = await this.#payload(request);
    await runInContext(context, async () => {
      const result = await this.#entrypoint?.(payload, context);
      if (isStream(result))
        await sendEvents(response, result, signal, (error) => this.#reportUnlessGone(error, signal));
      else sendResult(response, result, request.headers.accept);
    });
  }

  async #payload(request: IncomingMessage): Promise<Input> {
    const text = await readBody(request, this.#limit);
    const decoded = decodePayload(text, request.headers['content-type']);
    try {
      return await this.#parse(decoded);
    } catch (error) {
      throw error instanceof RequestError ? error : new RequestError(400, messageOf(error));
    }
  }

  #fail(request: IncomingMessage, response: ServerResponse, error: unknown, signal: AbortSignal): void {
    const status = error instanceof RequestError ? error.status : 500;
    if (status === 500) this.#reportUnlessGone(error, signal);
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    // The rest of an unread body is thrown away so that the caller gets to read this answer.
    if (!request.complete) {
      response.setHeader('connection', 'close');
      request.resume();
    }
    sendJson(response, status, { error: messageOf(error) });
  }

  #reportUnlessGone(error: unknown, signal: AbortSignal): void {
    if (!signal.aborted) this.#report('the invocation failed:', error);
  }
}

function requireObject(payload: unknown): Payload {
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) return { ...payload };
  throw new RequestError(400, 'The payload must be a JSON object such as {"prompt":"hi"}.');
}

function allow(request: IncomingMessage, response: ServerResponse, methods: string[]): void {
  if (methods.includes(request.method ?? '')) return;
  response.setHeader('allow', methods.join(', '));
  throw new RequestError(405, `Use ${methods.join(' or ')} here, not ${request.method}.`);
}

function portFromEnvironment(): number {
  const text = process.env.PORT ?? '8080';
  const port = Number(text);
  if (text.trim() === '' || !Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error(`PORT is ${JSON.stringify(text)}, not a port number between 0 and 65535.`);
  }
  return port;
}
