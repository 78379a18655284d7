import { type data, errors, ServiceError } from '@agentplatform/contract';
import type { RequestContext } from '../../kernel/service.ts';
import { describeExit, exitedSoon, type Lease } from '../../kernel/sessions/index.ts';
import { listFiles, readFiles, removeFiles, writeFiles } from './file-tools.ts';
import { HostRefusal, type HostTask, KernelHost } from './kernel-host.ts';
import { cutNotes, type ResultOptions, resultEvents, textBlock } from './results.ts';
import type { ToolCall } from './tool-arguments.ts';

export interface InvokeLimits {
  /** How long code and commands that are waited for may run. */
  executionSeconds: number;
  /** Time between that and giving up on the session itself. */
  graceMs: number;
}

/** The hint for a call in which Python did not find a module; undefined if there is no hint. */
export type WhatIsMissing = () => string | undefined;

/** How the vendor's Python SDK names itself; the AWS SDKs say `api/bedrock_agentcore#…`. */
const VENDOR_SDK = /(^|\s)bedrock-agentcore\/\d/;

type Events = AsyncIterable<data.CodeInterpreterStreamOutput>;

/**
 * Runs one tool in a leased session; the lease is released when the stream has ended or the caller has gone. What can be refused
 * is refused before the stream begins.
 */
export async function invokeTool(
  call: ToolCall,
  lease: Lease,
  ctx: RequestContext,
  limits: InvokeLimits,
  whatIsMissing: WhatIsMissing,
): Promise<Events> {
  // The session bounds the call itself; this is for a session that does not answer any more.
  const bound = AbortSignal.timeout(limits.executionSeconds * 1000 + limits.graceMs);
  const host = new KernelHost(lease.connection, AbortSignal.any([ctx.signal, bound]));
  const release = (): void => lease.release();
  ctx.signal.addEventListener('abort', release, { once: true });
  try {
    const events = await begin(call, host, limits, {
      whole: readsOneEvent(ctx),
      now: () => performance.now(),
      whatIsMissing,
    });
    return guarded(events, lease, release, ctx, bound);
  } catch (error) {
    release();
    throw await explain(error, lease, bound);
  }
}

async function begin(call: ToolCall, host: KernelHost, limits: InvokeLimits, reading: ResultOptions): Promise<Events> {
  switch (call.tool) {
    case 'executeCode': {
      const { code, language, runtime, clearContext } = call;
      const seconds = limits.executionSeconds;
      return resultEvents(await host.stream('/execute', { code, language, runtime, clearContext, seconds }), reading);
    }
    case 'executeCommand':
      return resultEvents(
        await host.stream('/command', { command: call.command, seconds: limits.executionSeconds }),
        reading,
      );
    case 'startCommandExecution':
      return single(taskResult(await host.startTask({ command: call.command })));
    case 'getTask':
      return single(taskResult(await host.task('GET', call.taskId)));
    case 'stopTask':
      return single(taskResult(await host.task('DELETE', call.taskId)));
    case 'writeFiles':
      return single(await writeFiles(host, call.files));
    case 'readFiles':
      return single(await readFiles(host, call.paths));
    case 'removeFiles':
      return single(await removeFiles(host, call.paths));
    case 'listFiles':
      return single(await listFiles(host, call.path));
  }
}

async function* single(result: data.CodeInterpreterResult): Events {
  yield { result };
}

/**
 * The vendor's own SDK, and what stands on it, return from the first event that they see: they get one whole event. Anybody may
 * ask for that by a header.
 */
function readsOneEvent(ctx: RequestContext): boolean {
  const wish = ctx.headers['x-agentplatform-events'];
  if (wish === 'whole') return true;
  if (wish === 'streamed') return false;
  return VENDOR_SDK.test(String(ctx.headers['user-agent'] ?? ''));
}

function taskResult(task: HostTask): data.CodeInterpreterResult {
  const { taskId, taskStatus, stdout, stderr, exitCode, seconds } = task;
  const texts = [stdout, stderr, ...cutNotes(task.cut)].filter((text) => text !== '');
  return {
    content: [textBlock(`Task ${taskId} is ${taskStatus}.`), ...texts.map(textBlock)],
    structuredContent: {
      taskId,
      taskStatus,
      stdout,
      stderr,
      ...(exitCode === null ? {} : { exitCode }),
      executionTime: seconds,
    },
    isError: taskStatus === 'failed',
  };
}

async function* guarded(
  events: Events,
  lease: Lease,
  release: () => void,
  ctx: RequestContext,
  bound: AbortSignal,
): Events {
  try {
    yield* events;
  } catch (error) {
    if (ctx.signal.aborted) throw error;
    throw await explain(error, lease, bound);
  } finally {
    ctx.signal.removeEventListener('abort', release);
    release();
  }
}

/** What runs in a session is the platform's own, and breaks a call off only by its end, which a busy machine sees late. */
const END_SEEN_WITHIN_MS = 10_000;

/** What went wrong between platform and session, as an error of the wire. */
async function explain(error: unknown, lease: Lease, bound: AbortSignal): Promise<unknown> {
  if (error instanceof ServiceError) return error;
  if (error instanceof HostRefusal) {
    if (error.kind === 'invalid' || error.kind === 'too-large') return errors.validation(error.message);
    if (error.kind === 'not-found') return errors.resourceNotFound(error.message);
    if (error.kind === 'busy') return errors.throttling(error.message, { retryAfterSeconds: 1 });
  }
  const ended = await exitedSoon(lease.sandbox, bound.aborted ? undefined : END_SEEN_WITHIN_MS);
  if (ended || lease.session.state !== 'active') {
    const how = ended ? (await describeExit(lease.sandbox)).replace('The agent', 'The session') : '';
    return errors.conflict(
      `The session ended while the call ran (${lease.session.endReason ?? 'exited'}). ${how}`.trim(),
      {
        remedy: 'Start a new session; files of the old one are gone.',
        cause: error,
      },
    );
  }
  if (bound.aborted)
    return errors.internal('The session did not answer within the time that a call may take.', { cause: error });
  const why = error instanceof Error ? error.message : String(error);
  return errors.internal(`The connection to the session broke: ${why}.`, { cause: error });
}
