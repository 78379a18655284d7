/**
 * Why a model gave no answer. throttled = asked too much, try later; refused = the request itself is at fault, asking again is in
 * vain; too-long = refused because it is more than the model takes; unavailable = not reached, or failing for now; unusable = it answered
 * with what is no answer.
 */
type ModelErrorKind = 'throttled' | 'refused' | 'too-long' | 'unavailable' | 'unusable';

/**
 * The service did not answer, or not with what was asked for. Users read the message (of an extraction that failed): it names neither
 * the service's address nor what it said. The cause says that, for the log, and never names the key.
 */
export class ModelError extends Error {
  override name = 'ModelError';
  readonly kind: ModelErrorKind;
  /** What the service said of a request that it refused, without the key and cut short; for whoever made the request. */
  readonly said: string | undefined;
  /** Of HTTP, that the service answered with; absent where it gave no answer, or none that can be used. */
  readonly status: number | undefined;

  constructor(
    message: string,
    {
      kind = 'unusable',
      said,
      status,
      ...options
    }: ErrorOptions & { kind?: ModelErrorKind; said?: string; status?: number } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.said = said;
    this.status = status;
  }

  /** Whether it is about what was asked: asking the same again is in vain. */
  get refused(): boolean {
    return this.kind === 'refused' || this.kind === 'too-long';
  }
}

const QUOTED = 300;
/** Answers to a request that is not as it should be, or too much: Bad Request, Content Too Large, Unprocessable Content. */
const REFUSALS = [400, 413, 422];
/** Too Many Requests, and Anthropic's word for the same. */
const THROTTLED = [429, 529];
/** What providers say of a conversation that is longer than the model takes. */
const TOO_LONG =
  /context.?(length|window|size)|(prompt|input|request) is too long|too many (input )?tokens|maximum.{0,40}tokens/i;

/** The error for an answer of `status` that says `text`; `key` is cut out of it, for services are known to say which key they refuse. */
export function errorOfStatus(status: number, text: string, key: string | undefined): ModelError {
  const said = without(key, text).slice(0, QUOTED);
  const kind = kindOf(status, text);
  return new ModelError(`the service of the model answered ${status}`, {
    ...{ kind, status },
    ...(kind === 'refused' || kind === 'too-long' ? { said } : {}),
    cause: new Error(`it said: ${said}`),
  });
}

function kindOf(status: number, text: string): ModelErrorKind {
  if (THROTTLED.includes(status)) return 'throttled';
  if (REFUSALS.includes(status)) return TOO_LONG.test(text) ? 'too-long' : 'refused';
  return status >= 500 ? 'unavailable' : 'unusable';
}

/** The error for a service that was not reached or whose answer broke off; the cause goes to the log. */
export function unreachable(cause: unknown): ModelError {
  const message = 'the service of the model cannot be reached, or gave no answer that can be used';
  return new ModelError(message, { kind: 'unavailable', cause });
}

function without(secret: string | undefined, text: string): string {
  return secret === undefined || secret === '' ? text : text.replaceAll(secret, '[redacted]');
}
