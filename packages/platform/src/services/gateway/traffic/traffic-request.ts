import { errors, holdsTooMuch } from '@agentplatform/contract';
import type { Passing } from '../../../kernel/http/index.ts';
import { onAbort } from '../../../kernel/on-abort.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { jsonOf, readWhole, textOf } from '../whole-body.ts';

/** The default limit of a body that is read as a whole. */
const MAX_BYTES = 4 * 1024 * 1024;
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** One HTTP request to a gateway beside MCP, whose caller is known and allowed. Its body is a stream until somebody reads it whole. */
export class TrafficRequest {
  readonly open: OpenGateway;
  readonly passing: Passing;
  readonly caller: ToolCaller;
  /** The first word of its path: the name of a target, or such as `inference`. */
  readonly word: string;
  /** What follows that, as it was written: empty, or from its slash on. */
  readonly path: string;
  #whole: Uint8Array | undefined;

  constructor({
    open,
    passing,
    caller,
    word,
    path,
  }: Pick<TrafficRequest, 'open' | 'passing' | 'caller' | 'word' | 'path'>) {
    this.open = open;
    this.passing = passing;
    this.caller = caller;
    this.word = word;
    this.path = path;
  }

  /** What is still to be sent on: the whole where it was read, which may be sent again. */
  get body(): Passing['body'] {
    return this.#whole ?? this.passing.body;
  }

  /** The same request, given up when `signal` aborts. If the body has been read as a whole, it can be sent again. Otherwise it can be sent only once. */
  until(signal: AbortSignal): TrafficRequest {
    const onGone: Passing['onGone'] = (run) => onAbort(signal, run);
    const request = new TrafficRequest({ ...this, passing: { ...this.passing, body: this.body, signal, onGone } });
    return request;
  }

  /** Whether anything is sent with it. */
  hasBody(): boolean {
    const { 'content-length': length, 'transfer-encoding': coding } = this.passing.req.headers;
    return coding !== undefined || (length !== undefined && Number(length) !== 0);
  }

  /**
   * What the body says, where that is JSON of no great length or was read before; whatever else it is stays a stream. Undefined for one that has a
   * member twice: whoever reads it takes the first or the last, and nobody knows which. Rejects as `whole`.
   */
  async said(): Promise<unknown> {
    const { 'content-type': type = '', 'content-length': length } = this.passing.req.headers;
    const short = JSON_TYPE.test(type) && !(Number(length) > MAX_BYTES);
    if (!this.hasBody() || !(short || this.#whole)) return undefined;
    const said = await this.json(MAX_BYTES);
    if (said === undefined) return undefined;
    return namesIn(textOf(await this.whole(MAX_BYTES))) === membersIn(said) ? said : undefined;
  }

  /** Whether the body is said to be JSON of no more than so many bytes. */
  isJson(maxBytes = MAX_BYTES): boolean {
    const { 'content-type': type = '', 'content-length': length } = this.passing.req.headers;
    return JSON_TYPE.test(type) && Number(length) <= maxBytes;
  }

  /** Reads the body, once. Rejects with RequestEntityTooLargeException, and where there is no memory for it. */
  async whole(maxBytes = MAX_BYTES): Promise<Uint8Array> {
    this.#whole ??= await readWhole(this.passing, maxBytes, () =>
      errors.tooLarge(`The body of this request may have at most ${maxBytes} bytes.`),
    );
    return this.#whole;
  }

  /** What the body says; undefined for what is no JSON, or has too many values. Rejects as `whole`. */
  async json(maxBytes = MAX_BYTES): Promise<unknown> {
    const bytes = await this.whole(maxBytes);
    return holdsTooMuch(bytes) ? undefined : jsonOf(textOf(bytes));
  }
}

/** How many names of members a text of JSON has: texts with a colon behind them. */
function namesIn(json: string): number {
  let names = 0;
  for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at)) {
    for (at += 1; json[at] !== '"' && at < json.length; at += 1) if (json[at] === '\\') at += 1;
    at += 1;
    while (json[at] === ' ' || json[at] === '\n' || json[at] === '\r' || json[at] === '\t') at += 1;
    if (json[at] === ':') names += 1;
  }
  return names;
}

/** How many members a value of JSON has, on all levels. */
function membersIn(value: unknown): number {
  const waiting: unknown[] = [value];
  let count = 0;
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one !== 'object' || one === null) continue;
    const values = Object.values(one);
    if (!Array.isArray(one)) count += values.length;
    waiting.push(...values);
  }
  return count;
}
