import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandGroup, platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { columns, harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';
import { stepThrough } from './trace-steps.ts';
import { durationOf, flatten, numberIn, spanLine } from './trace-text.ts';

/** Traces of agents. */
export function tracesCommand(terminal: Terminal) {
  return commandGroup('traces', 'Look at what agents did: sessions, traces, single spans.', [
    listTracesCommand(terminal),
    showTraceCommand(terminal),
    tailTracesCommand(terminal),
    exportTraceCommand(terminal),
  ]);
}

function listTracesCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List sessions that have traces, or the traces of one session.',
    examples: [
      { does: 'the newest sessions', line: 'agentcore traces list' },
      {
        does: 'those of one agent that failed',
        line: 'agentcore traces list --agent support-a1B2c3D4e5 --status error',
      },
      { does: 'the traces of a session', line: 'agentcore traces list --session SESSION' },
    ],
  })
    .option('--session <id>', 'show the traces of this session')
    .option('--agent <agent>', 'only sessions of this agent: its ARN, or its id')
    .option('--user <id>', 'only sessions of this user')
    .option('--status <status>', 'only sessions with status: ok or error')
    .option('--text <text>', 'only sessions with this text in a span')
    .option('--from <moment>', 'only sessions with spans from this moment on')
    .option('--limit <number>', 'number of sessions', '50')
    .action(async ({ session, json, agent, user, status, text, from, limit, ...options }) => {
      const connection = await findConnection(terminal, options);
      if (session !== undefined) {
        const path = `/observability/sessions/${segment(session)}/turns`;
        const answer = await get(terminal, connection, path);
        return json ? printJson(terminal, answer) : showTurns(terminal, answer);
      }
      const filters = Object.entries({ agent, user, status, text, from, limit }).filter(
        ([, value]) => value !== undefined,
      );
      const query = Object.fromEntries(filters.map(([name, value]) => [name, String(value)]));
      const answer = await get(terminal, connection, '/observability/sessions', query);
      return json ? printJson(terminal, answer) : showSessions(terminal, answer);
    });
}

function showTraceCommand(terminal: Terminal) {
  return platformCommand('show', {
    summary: 'Show a trace as a tree, or step through it with the keyboard.',
    details:
      'Keys with --steps: down or j, up or k: another step. Enter or space: open or close its input and output. q: end.',
    examples: [
      { does: 'as a tree', line: 'agentcore traces show 4bf92f3577b34da6a3ce929d0e0e4736' },
      { does: 'step by step', line: 'agentcore traces show 4bf92f3577b34da6a3ce929d0e0e4736 --steps' },
    ],
  })
    .argument('<trace>', 'id of the trace')
    .option('--steps', 'step through it with the keyboard')
    .action(async (trace, { steps, json, ...options }) => {
      const connection = await findConnection(terminal, options);
      const answer = await get(terminal, connection, `/observability/traces/${segment(trace)}`);
      if (json) return printJson(terminal, answer);
      const lines = flatten(listIn(answer, 'roots'));
      if (steps) return stepThrough(terminal, lines);
      for (const line of lines) print(terminal, spanLine(line));
      if (fieldOf(answer, 'more') === true)
        note(terminal, `There are more spans: these are the first ${lines.length}.`);
    });
}

function tailTracesCommand(terminal: Terminal) {
  return platformCommand('tail', {
    summary: 'Show spans as they come, until you press Ctrl+C.',
    examples: [{ does: 'of all agents', line: 'agentcore traces tail' }],
  }).action(async ({ json, ...options }) => {
    const connection = await findConnection(terminal, options);
    let after: string | undefined;
    while (!terminal.signal.aborted) {
      const answer = await get(terminal, connection, '/observability/tail', after === undefined ? {} : { after });
      after = textIn(answer, 'next');
      for (const span of listIn(answer, 'spans'))
        print(terminal, json ? JSON.stringify(span) : spanLine({ span, depth: 0, detached: false }));
      if (listIn(answer, 'spans').length === 0)
        await sleep(1000, undefined, { signal: terminal.signal }).catch(() => undefined);
    }
  });
}

function exportTraceCommand(terminal: Terminal) {
  return platformCommand('export', {
    summary: 'Export the spans of a trace as JSON Lines.',
    examples: [
      { does: 'into a file', line: 'agentcore traces export 4bf92f3577b34da6a3ce929d0e0e4736 -o trace.jsonl' },
    ],
  })
    .argument('<trace>', 'id of the trace')
    .option('-o, --output <file>', 'file to write (default: standard output)')
    .action(async (trace, { output, ...options }) => {
      const connection = await findConnection(terminal, options);
      const answer = await get(terminal, connection, `/observability/traces/${segment(trace)}`);
      const lines = flatten(listIn(answer, 'roots')).map(({ span }) => `${JSON.stringify(span)}\n`);
      if (output === undefined) for (const line of lines) terminal.stdout.write(line);
      else {
        const file = createWriteStream(output, { mode: 0o600 });
        file.end(lines.join(''));
        await once(file, 'finish');
        note(terminal, `${lines.length} spans are in ${output}.`);
      }
    });
}

const get = (
  terminal: Terminal,
  connection: Connection,
  path: string,
  query: Record<string, string> = {},
): Promise<unknown> => adminJson(connection, { path, query, wire: true, signal: terminal.signal });

function showSessions(terminal: Terminal, answer: unknown): void {
  const sessions = listIn(answer, 'sessions');
  if (sessions.length === 0) {
    note(terminal, 'There is no such session with traces.');
    return;
  }
  const rows = sessions.map((one) => [
    new Date(numberIn(one, 'lastUs') / 1000).toISOString().slice(0, 19),
    harmless(textIn(one, 'sessionId')),
    harmless(textIn(one, 'agent').replace(/^([^:]*:){5}/, '') || '-'),
    harmless(textIn(one, 'userId') || '-'),
    durationOf(numberIn(one, 'lastUs') - numberIn(one, 'firstUs')),
    textIn(one, 'spans'),
    textIn(one, 'errors'),
    `${textIn(one, 'inputTokens')}+${textIn(one, 'outputTokens')}`,
  ]);
  const heading = ['LAST SPAN', 'SESSION', 'AGENT', 'USER', 'DURATION', 'SPANS', 'ERRORS', 'TOKENS'];
  for (const line of columns([heading, ...rows])) print(terminal, line);
  if (fieldOf(answer, 'nextToken') !== undefined)
    note(terminal, `There are more: these are the newest ${rows.length}.`);
}

function showTurns(terminal: Terminal, answer: unknown): void {
  const turns = listIn(answer, 'turns');
  if (turns.length === 0) {
    note(terminal, 'The session has no traces.');
    return;
  }
  const rows = turns.map((one) => [
    new Date(numberIn(one, 'startedUs') / 1000).toISOString(),
    textIn(one, 'traceId'),
    durationOf(numberIn(one, 'durationUs')),
    textIn(one, 'spans'),
    textIn(one, 'errors'),
    `${textIn(one, 'inputTokens')}+${textIn(one, 'outputTokens')}`,
  ]);
  for (const line of columns([['STARTED', 'TRACE', 'DURATION', 'SPANS', 'ERRORS', 'TOKENS'], ...rows]))
    print(terminal, line);
  if (fieldOf(answer, 'more') === true) note(terminal, `There are more: these are the first ${rows.length}.`);
}
