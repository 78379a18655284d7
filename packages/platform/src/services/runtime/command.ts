import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type data, errors } from '@agentplatform/contract';
import { NEVER_RAN, SandboxError } from '../../kernel/sandbox/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { Lease } from '../../kernel/sessions/index.ts';
import { type Span, traceHeaders } from '../../kernel/telemetry/index.ts';

type Event = data.InvokeAgentRuntimeCommandStreamOutput;

const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_TIMEOUT_SECONDS = 3600;

/** What the model leaves open: `timeout` is 1 to 3600 s, 300 when absent (COMPATIBILITY 1), and no command line holds U+0000. Throws ValidationException. */
export function commandTimeout({
  command,
  timeout = DEFAULT_TIMEOUT_SECONDS,
}: data.InvokeAgentRuntimeCommandRequestBody): number {
  if (command.includes('\0')) throw errors.invalidField('body.command', 'must not hold the character U+0000');
  if (timeout < 1 || timeout > MAX_TIMEOUT_SECONDS)
    throw errors.invalidField('body.timeout', `must be 1 to ${MAX_TIMEOUT_SECONDS} seconds`);
  return timeout;
}

/**
 * Runs a shell command in a session's sandbox and gives its output as it comes, both streams in the order of arrival, then
 * how it ended. The command is killed when its time is up or its reader goes away; the lease is released and `span` ends in any case.
 */
export async function* runCommand(
  lease: Lease,
  command: string,
  timeoutSeconds: number,
  ctx: RequestContext,
  span: Span,
): AsyncIterable<Event> {
  const stop = new AbortController();
  const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
  try {
    yield { chunk: { contentStart: {} } };
    const signal = AbortSignal.any([stop.signal, timeout, ctx.signal]);
    const run = await lease.sandbox.exec(['/bin/sh', '-c', command], { signal, env: traceVariables(span) });
    run.stdin.end();
    for await (const { name, text } of merged({ stdout: run.stdout, stderr: run.stderr }))
      yield { chunk: { contentDelta: { [name]: text } } };
    const exitCode = await run.exited;
    span.set('process.exit.code', exitCode);
    yield { chunk: { contentStop: { exitCode, status: timeout.aborted ? 'TIMED_OUT' : 'COMPLETED' } } };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    ctx.log.warn({ err: error }, 'a command could not be run in its sandbox');
    yield { chunk: { contentDelta: { stderr: `${error.message}\n` } } };
    yield { chunk: { contentStop: { exitCode: NEVER_RAN, status: 'COMPLETED' } } };
  } finally {
    stop.abort();
    span.end();
    lease.release();
  }
}

/** By which a program that was started learns what it is a part of (OpenTelemetry, environment variables as carriers). */
function traceVariables({ context }: Span): Record<string, string> {
  if (!context) return {};
  const headers = traceHeaders(context);
  const variables: Record<string, string> = {};
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const [name = '', value = ''] = headers.slice(i, i + 2);
    if (name !== 'x-amzn-trace-id') variables[name.toUpperCase()] = value;
  }
  return variables;
}

/** Pieces of several byte streams as text, as they come; a slow reader makes all of them wait, and one that goes away ends them. */
async function* merged<Name extends string>(
  streams: Record<Name, Readable>,
): AsyncIterable<{ name: Name; text: string }> {
  const sources = (Object.keys(streams) as Name[]).map((name) => ({
    name,
    reader: streams[name][Symbol.asyncIterator](),
    decoder: new StringDecoder('utf8'),
  }));
  const ended: IteratorReturnResult<undefined> = { done: true, value: undefined };
  const next = async (source: (typeof sources)[number]) => ({
    source,
    // What a killed command has left open for others is cut off.
    result: await source.reader.next().catch(() => ended),
  });
  const pending = new Map(sources.map((source) => [source.name, next(source)]));
  try {
    while (pending.size > 0) {
      const { source, result } = await Promise.race(pending.values());
      const { name, decoder } = source;
      if (result.done) pending.delete(name);
      else pending.set(name, next(source));
      const text = result.done ? decoder.end() : decoder.write(result.value);
      if (text !== '') yield { name, text };
    }
  } finally {
    // What nobody reads would keep its writer waiting.
    for (const { name } of sources) streams[name].destroy();
  }
}
