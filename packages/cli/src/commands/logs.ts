import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { explain } from '../explain.ts';
import { adminFetch } from '../platform/admin.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { type RuntimeRef, resolveRuntime } from '../platform/runtimes.ts';
import { listSessions } from '../platform/sessions.ts';
import { linesOf } from '../terminal/event-decoder.ts';
import { harmless, note, print, styled, type Terminal } from '../terminal/terminal.ts';

export function logsCommand(terminal: Terminal) {
  return platformCommand('logs', {
    summary: 'Show what an agent printed, session by session.',
    details:
      'Times are in this machine’s time zone. Lines that an older version kept have no time. With --json each line is a JSON object {sessionId, at, line}, and `at` is in UTC.',
    examples: [
      { does: 'what the agent in this folder printed', line: 'agentcore logs' },
      { does: 'the same, and what it prints from now on, until Ctrl-C', line: 'agentcore logs -f' },
    ],
  })
    .option('-f, --follow', 'stay and show new lines as they come')
    .option('-s, --session <id>', 'only that session')
    .option('--no-times', 'leave out when each line was printed')
    .option('-a, --agent <name>', 'agent by name, id or ARN (default: the one in this folder)')
    .action(async (options) => {
      const connection = await findConnection(terminal, options);
      const { id, name } = await resolveRuntime(terminal, connection, options.agent);
      const response = await adminFetch(connection, {
        path: `/runtimes/${encodeURIComponent(id)}/logs`,
        query: { ...(options.session ? { session: options.session } : {}), ...(options.follow ? { follow: '1' } : {}) },
        signal: terminal.signal,
      });
      if ((await printLog(terminal, response, options)) || options.follow) return;
      if (options.session !== undefined) await requireSession(connection, { id, name }, options.session);
      if (!options.json) note(terminal, 'Nothing was printed yet.');
    });
}

export interface LogFlags {
  json?: true;
  follow?: true;
  times: boolean;
}

/** Prints a log as the platform sends it, until its end or Ctrl-C. Resolves with whether there was anything. */
export async function printLog(
  terminal: Terminal,
  { body }: Pick<Response, 'body'>,
  { json, follow, times }: LogFlags,
): Promise<boolean> {
  let any = false;
  try {
    for await (const line of body ? linesOf(body) : []) {
      if (line === '') continue;
      any = true;
      print(terminal, json ? line : shown(terminal, line, times));
    }
  } catch (error) {
    // Ctrl-C is how following ends, not a failure.
    if (!(follow && terminal.signal.aborted)) throw error;
  }
  return any;
}

/** Rejects with a `CliError` (notFound) when a session that printed nothing is not alive either, as far as the user may know. */
async function requireSession(
  connection: Connection,
  { id, name }: Pick<RuntimeRef, 'id' | 'name'>,
  session: string,
): Promise<void> {
  const live = await listSessions(connection, id).catch((error: unknown) => {
    if (explain(error).reason === 'denied') return undefined;
    throw error;
  });
  if (!live || live.some(({ sessionId }) => sessionId === session)) return;
  throw new CliError(
    'notFound',
    `There is no session ${session} of ${name}: it is not running and has printed nothing.`,
    'List the running sessions with: agentcore status',
  );
}

function shown(terminal: Terminal, text: string, times: boolean): string {
  let entry: unknown;
  try {
    entry = JSON.parse(text);
  } catch {
    throw new CliError('failure', `The platform sent a log line that is not JSON: ${harmless(text).slice(0, 200)}`);
  }
  const field = (name: string): string => {
    const value: unknown = typeof entry === 'object' && entry !== null ? Reflect.get(entry, name) : undefined;
    return value === undefined || value === null ? '' : String(value);
  };
  const at = times ? localTime(field('at')) : '';
  const head = [at, field('sessionId').slice(0, 8)].filter((part) => part !== '').join('  ');
  return `${styled(terminal, 'stdout', 'dim', head)}  ${harmless(field('line'))}`;
}

/** A time in the time zone of this machine, such as `2026-11-23 09:05:54`; empty if the text is not a time. */
function localTime(iso: string): string {
  const moment = new Date(iso);
  if (Number.isNaN(moment.getTime())) return '';
  const shifted = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19).replace('T', ' ');
}
