import { errors, ServiceError } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { requestUpstream, type UpstreamResponse } from '../../kernel/http/index.ts';
import { onAbort } from '../../kernel/on-abort.ts';
import { exitedSoon, type Lease, StartFailure } from '../../kernel/sessions/index.ts';
import type { PlatformFunction } from './function.ts';
import type { FunctionSandboxes, SandboxState } from './function-sandboxes.ts';

export interface FunctionEventsDeps {
  sandboxes: Pick<FunctionSandboxes, 'use'>;
  clock: Clock;
}

/** One event for a function. */
export interface FunctionEvent {
  /** JSON. */
  payload: Buffer;
  /** JSON in base64, as the wire has it. */
  clientContext: string | undefined;
  requestId: string;
  /** Aborted when nobody waits any more: the sandbox is ended then. */
  signal: AbortSignal;
}

/** What came of it. */
export interface EventResult {
  /** What the handler returned or, where `failed`, the error: JSON, by the word of the function. */
  payload: Buffer;
  failed: boolean;
}

/** Of an event and of an answer, in bytes, as the original has it. */
export const MAX_PAYLOAD_BYTES = 6_291_456;
/** Beside the answer itself. */
const SLACK_BYTES = 1024;

/** Has functions handle events. */
export class FunctionEvents {
  readonly #deps: FunctionEventsDeps;

  constructor(deps: FunctionEventsDeps) {
    this.#deps = deps;
  }

  /**
   * What the handler makes of the event; its failures are results. Rejects with ThrottlingException where there is no room for another sandbox,
   * InternalServerException where none can be made, and the signal's reason.
   */
  async handle(fn: PlatformFunction, event: FunctionEvent): Promise<EventResult> {
    try {
      return await this.#deps.sandboxes.use(fn, event.signal, (lease) => this.#send(lease, fn, event));
    } catch (error) {
      event.signal.throwIfAborted();
      if (error instanceof StartFailure)
        return failure(
          event,
          'Runtime.ExitError',
          'Error: The function ended, or did not get ready, before its first event',
        );
      throw error;
    }
  }

  async #send(
    lease: Lease,
    fn: PlatformFunction,
    event: FunctionEvent,
  ): Promise<EventResult & { sandbox: SandboxState }> {
    const ending = new AbortController();
    const cancel = this.#deps.clock.after(fn.timeoutSeconds * 1000, () => ending.abort(TIMED_OUT));
    const signal = AbortSignal.any([event.signal, ending.signal]);
    try {
      const answer = await requestUpstream(lease.connection, requestOf(fn, event), (run) => onAbort(signal, run));
      return await read(answer, event, signal);
    } catch (error) {
      event.signal.throwIfAborted();
      if (error instanceof ServiceError) throw error;
      return { ...(await explained(error, lease, fn, event, ending.signal)), sandbox: 'spent' };
    } finally {
      cancel();
    }
  }
}

const TIMED_OUT = new Error('the function has taken all its time');

function requestOf({ arn, timeoutSeconds }: PlatformFunction, { payload, clientContext, requestId }: FunctionEvent) {
  const headers = [
    ...['content-type', 'application/json', 'content-length', String(payload.length)],
    ...['x-function-request-id', requestId, 'x-function-arn', arn],
    ...['x-function-timeout-ms', String(timeoutSeconds * 1000)],
    ...(clientContext === undefined ? [] : ['x-function-client-context', clientContext]),
  ];
  // The function's own time is the only bound.
  return { method: 'POST', path: '/events', headers, body: payload, headersTimeout: 0, bodyTimeout: 0 } as const;
}

async function read(
  { status, headers, body }: UpstreamResponse,
  event: FunctionEvent,
  signal: AbortSignal,
): Promise<EventResult & { sandbox: SandboxState }> {
  const callOff = onAbort(signal, () => body.cancel(TIMED_OUT));
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of body) {
      bytes += part.length;
      if (bytes > MAX_PAYLOAD_BYTES + SLACK_BYTES) return { ...tooLarge(event), sandbox: 'spent' };
      parts.push(part);
    }
  } finally {
    callOff();
  }
  if (status === 400) throw errors.validation('The event is not JSON.');
  // Only code that has taken the place of what runs it answers otherwise.
  if (status !== 200) return { ...failure(event, 'Runtime.ExitError', `Error: answered ${status}`), sandbox: 'spent' };
  return {
    payload: Buffer.concat(parts),
    failed: headers['x-function-error'] !== undefined,
    sandbox: headers['x-function-sandbox'] === undefined ? 'good' : 'spent',
  };
}

/** Why there is no answer: it ran out of time, or its sandbox is gone. */
async function explained(
  error: unknown,
  { sandbox }: Lease,
  { timeoutSeconds }: PlatformFunction,
  event: FunctionEvent,
  timedOut: AbortSignal,
): Promise<EventResult> {
  if (timedOut.aborted)
    return failure(event, 'Sandbox.Timedout', `Error: Task timed out after ${timeoutSeconds.toFixed(2)} seconds`);
  if (!(await exitedSoon(sandbox))) {
    const why = error instanceof Error ? error.message : String(error);
    return failure(event, 'Runtime.ExitError', `Error: Runtime broke off its answer: ${why}`);
  }
  const { exitCode, outOfMemory } = await sandbox.exited;
  const how = outOfMemory ? 'signal: killed' : `exit status ${exitCode ?? 'unknown'}`;
  return failure(
    event,
    outOfMemory ? 'Runtime.OutOfMemory' : 'Runtime.ExitError',
    `Error: Runtime exited with error: ${how}`,
  );
}

function tooLarge(event: FunctionEvent): EventResult {
  const message = `Response payload size exceeded maximum allowed payload size (${MAX_PAYLOAD_BYTES} bytes).`;
  return failure(event, 'Function.ResponseSizeTooLarge', message);
}

function failure({ requestId }: FunctionEvent, errorType: string, message: string): EventResult {
  const errorMessage = message.startsWith('Error:') ? `RequestId: ${requestId} ${message}` : message;
  return { payload: Buffer.from(JSON.stringify({ errorType, errorMessage })), failed: true };
}
