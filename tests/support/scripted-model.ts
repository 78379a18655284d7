import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** What a model was asked, as OpenAI's chat completions say it. */
export interface ScriptedRequest {
  model: string;
  authorization: string | undefined;
  messages: ScriptedMessage[];
  /** Names of the tools that it may call. */
  tools: string[];
  body: Record<string, unknown>;
}

export interface ScriptedMessage {
  role: string;
  content: string | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

/** What it answers. */
export interface ScriptedReply {
  /** Pieces of text, each a chunk of the stream. */
  text?: readonly string[];
  calls?: readonly { id: string; name: string; input: unknown }[];
  /** Instead of JSON that says `input`. */
  brokenInput?: string;
  finish?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** An answer of the service that is no answer of the model. */
  status?: number;
  error?: string;
  /** The connection ends in the middle. */
  cut?: true;
  /** Answers nothing until the client goes away. */
  never?: true;
  /** Called between the first chunk and the rest. */
  pause?(): Promise<void>;
}

/** A server of chat completions whose answers a test writes. */
export class ScriptedModel {
  readonly requests: ScriptedRequest[] = [];
  /** What answers the next request. */
  script: (request: ScriptedRequest) => ScriptedReply = () => ({ text: ['Hello.'] });
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch(() => response.destroy());
  });

  static async start(): Promise<ScriptedModel> {
    const model = new ScriptedModel();
    model.#server.listen(0, '127.0.0.1');
    await once(model.#server, 'listening');
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse) {
    const body = (await json(request)) as Record<string, unknown> & Pick<ScriptedRequest, 'model' | 'messages'>;
    const tools = (body.tools ?? []) as { function: { name: string } }[];
    const asked: ScriptedRequest = {
      ...{ model: body.model, messages: body.messages, body },
      authorization: request.headers.authorization,
      tools: tools.map((tool) => tool.function.name),
    };
    this.requests.push(asked);
    const reply = this.script(asked);
    if (reply.never) return;
    if (reply.status !== undefined) {
      response.writeHead(reply.status, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify({ error: { message: reply.error ?? 'no', type: 'error' } }));
    }
    if (body.stream === true) return this.#stream(reply, response);
    const message = { role: 'assistant', content: (reply.text ?? []).join('') };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ choices: [{ index: 0, message, finish_reason: reply.finish ?? 'stop' }], usage: USAGE }),
    );
  }

  async #stream({ text = [], calls = [], brokenInput, finish, cut, pause }: ScriptedReply, response: ServerResponse) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (delta: object, finish_reason: string | null = null): void => {
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    };
    chunk({ role: 'assistant', content: '' });
    for (const [index, piece] of text.entries()) {
      chunk({ content: piece });
      if (index === 0) await pause?.();
    }
    for (const [index, { id, name, input }] of calls.entries()) {
      const args = brokenInput ?? JSON.stringify(input);
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
      chunk({ tool_calls: [{ index, function: { arguments: args } }] });
    }
    if (cut) return void response.destroy();
    chunk({}, finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'));
    response.write(`data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n`);
    response.end('data: [DONE]\n\n');
  }
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
