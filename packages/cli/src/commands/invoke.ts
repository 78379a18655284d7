import { randomUUID } from 'node:crypto';
import type { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import type { ExitReason } from '../exit-codes.ts';
import { explain } from '../explain.ts';
import { dataClient } from '../platform/clients.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { type RuntimeRef, resolveRuntime } from '../platform/runtimes.ts';
import { type DeployRecord, readRecord, writeRecord } from '../project/deploy-state.ts';
import { patience } from '../terminal/progress.ts';
import { note, styled, type Terminal } from '../terminal/terminal.ts';
import { portOption } from './options.ts';
import { readPayload } from './payload.ts';
import { type Answer, showAnswer } from './show-answer.ts';

const accept = 'application/json, text/event-stream';

export function invokeCommand(terminal: Terminal) {
  return platformCommand('invoke', {
    summary: 'Call an agent and show its answer as it comes.',
    details:
      'The payload is a JSON object. With "-", or without a payload when input is piped, it is read from standard input. Without --session a new session ' +
      'begins, and its id is written to stderr. The answer goes to stdout.',
    examples: [
      { does: 'call the agent in this folder in a new session', line: `agentcore invoke '{"prompt":"hi"}'` },
      { does: 'go on in the session of the last call', line: `agentcore invoke --prompt "and then?" --continue` },
      { does: 'call an agent by name', line: `agentcore invoke '{"prompt":"hi"}' --agent my_agent` },
      { does: 'call the agent that agentcore dev runs', line: `agentcore invoke '{"prompt":"hi"}' --local` },
    ],
  })
    .argument('[payload]', 'JSON object for the agent')
    .option('-p, --prompt <text>', 'send {"prompt": text}')
    .option('-s, --session <id>', 'session to call, 33 to 256 characters (default: a new one)')
    .option('-c, --continue', 'call the session of the last call from this folder')
    .option('-a, --agent <name>', 'agent by name, id or ARN (default: the one in this folder)')
    .option('-q, --qualifier <endpoint>', 'endpoint of the agent (default: DEFAULT)')
    .option('-u, --user-id <id>', 'end user on whose behalf the call is made')
    .option('--raw', 'pass the answer on byte by byte, without decoding events')
    .option('--local [port]', 'call the agent that agentcore dev runs, on that port (default: 8080)', localOption)
    .action(async (argument, options) => {
      // A payload that stands right after it was not meant as the port.
      const taken = typeof options.local === 'string' ? options.local : undefined;
      if (taken !== undefined && argument !== undefined)
        throw new CliError('usage', `--local takes a port, not ${taken}.`);
      const payload = await readPayload(terminal, taken ?? argument, options.prompt);
      const style = options.raw ? 'raw' : options.json ? 'json' : 'text';
      if (options.session !== undefined && options.continue) {
        throw new CliError('usage', 'Give either --session or --continue, not both.');
      }
      const done = patience(terminal, 'waiting for the agent');
      let begun: string | undefined;
      try {
        const answer = options.local
          ? await invokeLocally(
              terminal,
              typeof options.local === 'number' ? options.local : 8080,
              payload,
              options.session,
            )
          : await invokeDeployed(terminal, payload, options, (session) => {
              begun = session;
            });
        await showAnswer(terminal, answer, style, done);
      } finally {
        done();
        if (begun && style === 'text') note(terminal, styled(terminal, 'stderr', 'dim', `session ${begun}`));
      }
    });
}

function localOption(text: string): number | string {
  return /^\s*[{["]/.test(text) || text === '-' ? text : portOption(text);
}

interface InvokeOptions {
  endpoint?: string;
  profile?: string;
  agent?: string;
  session?: string;
  continue?: boolean;
  qualifier?: string;
  userId?: string;
}

// What the platform refuses reaches no session; after all else, an interruption too, there may be one.
const refusals: readonly ExitReason[] = ['usage', 'denied', 'notFound', 'unreachable'];

/** Calls the agent on the platform. `onBegun` is told of a session that this call made, however the call goes on. */
async function invokeDeployed(
  terminal: Terminal,
  payload: Buffer,
  options: InvokeOptions,
  onBegun: (session: string) => void,
): Promise<Answer> {
  if (options.session !== undefined) checkSessionId(options.session);
  if (options.userId !== undefined) checkHeader('A user id', options.userId);
  const connection = await findConnection(terminal, options);
  const runtime = await resolveRuntime(terminal, connection, options.agent);
  const sessionId =
    options.session ?? (options.continue ? await lastSession(runtime, connection, options.qualifier) : randomUUID());
  const client = await dataClient(connection);
  const { folder, id: agentRuntimeId, arn: agentRuntimeArn } = runtime;
  const before = folder ? await readRecord(folder, connection) : undefined;
  const remember = async (record: DeployRecord | undefined): Promise<void> => {
    if (folder) await writeRecord(folder, connection, record);
  };
  const began = (): void => {
    if (options.session === undefined && !options.continue) onBegun(sessionId);
  };
  // Not between the answer's head and its body: what came of a body that breaks off meanwhile would be lost.
  const lastSessions = { ...before?.lastSessions, [options.qualifier ?? DEFAULT]: sessionId };
  await remember({ agentRuntimeId, agentRuntimeArn, lastSessions });
  const answer = await send(client, terminal, payload, runtime, sessionId, options).catch(async (error: unknown) => {
    const { reason, message } = explain(error);
    if (refusals.includes(reason)) await remember(before);
    else began();
    if (reason !== 'agentFailed') throw error;
    throw new CliError(reason, message, remedyFor(sessionId, options.agent), { cause: error });
  });
  began();
  return answer;
}

async function send(
  client: BedrockAgentCoreClient,
  terminal: Terminal,
  payload: Buffer,
  runtime: RuntimeRef,
  sessionId: string,
  { agent, qualifier, userId }: InvokeOptions,
): Promise<Answer> {
  const { InvokeAgentRuntimeCommand } = await import('@aws-sdk/client-bedrock-agentcore');
  const output = await client.send(
    new InvokeAgentRuntimeCommand({
      agentRuntimeArn: runtime.arn,
      runtimeSessionId: sessionId,
      contentType: 'application/json',
      accept,
      payload,
      ...(qualifier ? { qualifier } : {}),
      ...(userId ? { runtimeUserId: userId } : {}),
    }),
    { abortSignal: terminal.signal },
  );
  const body = output.response;
  if (!body || !(Symbol.asyncIterator in body)) throw new CliError('failure', 'The platform answered without a body.');
  return { sessionId, remedy: remedyFor(sessionId, agent), contentType: output.contentType ?? '', body };
}

function remedyFor(sessionId: string, agent: string | undefined): string {
  return `See what it printed with: agentcore logs --session ${sessionId}${agent === undefined ? '' : ` --agent ${agent}`}`;
}

async function invokeLocally(
  terminal: Terminal,
  port: number,
  payload: Buffer,
  session: string | undefined,
): Promise<Answer> {
  if (session !== undefined) checkHeader('A session id', session);
  const url = `http://127.0.0.1:${port}/invocations`;
  const sessionId = session ?? 'local-session-0000000000000000000';
  let response: Response;
  try {
    response = await fetch(url, {
      method: 'POST',
      body: new Uint8Array(payload),
      headers: { 'content-type': 'application/json', accept, 'x-amzn-bedrock-agentcore-runtime-session-id': sessionId },
      signal: terminal.signal,
    });
  } catch (error) {
    if (terminal.signal.aborted) throw error;
    throw new CliError(
      'unreachable',
      `No agent answers on port ${port}.`,
      'Start it in another terminal: agentcore dev',
      { cause: error },
    );
  }
  const contentType = response.headers.get('content-type') ?? '';
  if (!response.ok)
    throw new CliError(
      'agentFailed',
      `The agent answered ${response.status}: ${(await response.text()).slice(0, 2000)}`,
    );
  const remedy = 'See what it printed where agentcore dev runs.';
  return { sessionId: undefined, remedy, contentType, body: response.body ?? emptyBody() };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

/** Throws a `CliError` (usage) for what a header does not carry as it is. */
function checkHeader(what: string, value: string): void {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)) return;
  throw new CliError(
    'usage',
    `${what} is made of visible ASCII characters; "${value.slice(0, 40)}" is not.`,
    'Use letters, digits and signs such as - _ . @ and encode other characters as in a URL.',
  );
}

/** Throws a `CliError` (usage) for an id that the wire does not allow. */
export function checkSessionId(
  id: string,
  remedy = 'Leave --session out for a new session, use --continue for the last one, or take a UUID.',
): void {
  if (id.length < 33 || id.length > 256)
    throw new CliError(
      'usage',
      `A session id has 33 to 256 characters; "${id.slice(0, 40)}" has ${id.length}.`,
      remedy,
    );
  checkHeader('A session id', id);
}

/** What an endpoint is called that nobody names. */
const DEFAULT = 'DEFAULT';

/** The session that was called last from the agent's folder, by that endpoint of the agent. */
export async function lastSession(runtime: RuntimeRef, connection: Connection, qualifier = DEFAULT): Promise<string> {
  const record = runtime.folder ? await readRecord(runtime.folder, connection) : undefined;
  const last = record?.lastSessions?.[qualifier];
  if (last !== undefined) return last;
  throw new CliError(
    'notFound',
    `No session was called from here yet${qualifier === DEFAULT ? '' : ` by the endpoint ${qualifier}`}.`,
    'Begin one: leave --continue out, or name it with --session.',
  );
}
