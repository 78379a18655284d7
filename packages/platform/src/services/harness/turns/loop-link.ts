import { PassThrough } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Json, JsonSchema, ModelEvent } from '../../../kernel/models/index.ts';
import type { Message, ToolResult } from '../conversations/message.ts';

/** A tool as the loop shows it to the model. */
export interface LoopTool {
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** A function of the client: a call of it pauses the turn. */
  inline?: true;
}

/** What a turn is, as the loop is told. */
export interface LoopTurn {
  system: string | undefined;
  /** The conversation before what is new. */
  messages: Message[];
  /** What is new: the loop begins with it. */
  input: Message[];
  /** Names of tools that the sandbox itself has. */
  builtIns: string[];
  tools: LoopTool[];
  /** Whether the loop is to ask before and after it runs a tool itself, or hands it to the client. */
  asks: boolean;
  limits: { turns: number; outputTokens?: number };
  truncation: { strategy: string; config?: object };
}

/** What a model is asked by the loop. Nothing of it is believed before it was read. */
export interface LoopModelCall {
  type: 'model';
  call: number;
  /** `turn`: the client sees the answer. `summary`: the loop shortens the conversation. */
  purpose: 'turn' | 'summary';
  messages: Message[];
  system?: string | undefined;
  tools: Omit<LoopTool, 'inline'>[];
}

export interface LoopToolCall {
  type: 'tool';
  call: number;
  toolUseId: string;
  name: string;
  input: Json;
}

/** A tool that the loop runs itself or hands to the client: without a result before it, with one after it. */
export interface LoopHookCall {
  type: 'hook';
  call: number;
  toolUseId: string;
  name: string;
  input: Json;
  result?: ToolResult | undefined;
}

/** What the platform answers to a call. */
export type LoopAnswer =
  | { call: number; event: ModelEvent; last?: boolean }
  | { call: number; failed: { kind: string; message: string }; last: true }
  | { call: number; decision: { allowed: boolean; reason?: string | undefined }; last: true }
  | { call: number; result: Omit<ToolResult, 'toolUseId'>; last: true };

/** Longest line of the loop's: a whole conversation is the longest there is. */
const MOST_LINE_CHARS = 64 * 2 ** 20;

/**
 * One turn of the loop in a session's sandbox: a request whose body and whose answer are lines of JSON, at the same time. What the loop asks is
 * about this turn, for nothing else has the connection: no token says so, and none can be taken away.
 */
export class LoopLink {
  readonly #body: PassThrough;
  readonly #answer: AsyncIterable<Buffer>;

  private constructor(body: PassThrough, answer: AsyncIterable<Buffer>) {
    this.#body = body;
    this.#answer = answer;
  }

  /** Begins the turn. Rejects with undici's error, and where the loop refuses; the signal ends the turn at any time. */
  static async open(connection: Dispatcher, turn: LoopTurn, signal: AbortSignal): Promise<LoopLink> {
    const body = new PassThrough();
    // What breaks is heard by whoever reads the answer.
    body.on('error', () => undefined);
    body.write(`${JSON.stringify(turn)}\n`);
    const { statusCode, body: answer } = await connection.request({
      ...{ method: 'POST', path: '/turn', headers: { 'content-type': 'application/x-ndjson' }, body, signal },
    });
    if (statusCode === 200) return new LoopLink(body, answer);
    body.end();
    throw new Error(`the loop refused the turn with ${statusCode}: ${(await answer.text()).slice(0, 200)}`);
  }

  /** Resolves when there is room for more. */
  async send(answer: LoopAnswer): Promise<void> {
    if (this.#body.destroyed) return;
    if (this.#body.write(`${JSON.stringify(answer)}\n`)) return;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        this.#body.off('drain', go).off('close', go);
        resolve();
      };
      this.#body.once('drain', go).once('close', go);
    });
  }

  /** What the loop says, as it comes. Throws for a line that is no JSON or too long, and when the connection breaks. */
  async *messages(): AsyncGenerator<unknown> {
    let parts: string[] = [];
    let length = 0;
    const decoder = new TextDecoder();
    for await (const chunk of this.#answer) {
      const pieces = decoder.decode(chunk, { stream: true }).split('\n');
      for (const [index, piece] of pieces.entries()) {
        if (index > 0) {
          yield JSON.parse(parts.join(''));
          parts = [];
          length = 0;
        }
        length += piece.length;
        if (length > MOST_LINE_CHARS)
          throw new Error(`a message of the loop is longer than ${MOST_LINE_CHARS} characters`);
        if (piece !== '') parts.push(piece);
      }
    }
  }

  /** Nothing more is said. */
  close(): void {
    this.#body.end();
  }
}
