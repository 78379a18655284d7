import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { adminJson } from '../platform/admin.ts';
import { findConnection } from '../platform/connection.ts';
import { columns, harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';
import { showBill } from './usage-bill.ts';

type Column = readonly [heading: string, show: (row: unknown) => string];

/** `agentcore usage`. */
export function usageCommand(terminal: Terminal) {
  return platformCommand('usage', {
    summary: 'Show what was used and what it costs, or what sessions used of this machine.',
    details:
      'With --by it is the bill: seconds of memory and processor time of sessions, and what is counted, with their prices (metering.prices). Without it: a session has a row for each sandbox that it had: the processor seconds so far, and the most memory that it held at once. Rows of live sessions are about a minute old. Models are counted by the day (UTC), those behind a gateway by: agentcore gateway usage.',
    examples: [
      { does: 'the bill of the last 30 days, a line for each agent', line: 'agentcore usage --by agent' },
      {
        does: 'of one month, for a spreadsheet',
        line: 'agentcore usage --by day --from 2026-11-01 --to 2026-11-30 --csv',
      },
      { does: 'the last 24 hours', line: 'agentcore usage' },
      { does: 'the last week, for a program', line: 'agentcore usage --hours 168 --json' },
    ],
  })
    .option('--by <what>', 'show the bill, by: agent, session, user, day or piece')
    .option('--from <day>', 'first day of the bill, such as 2026-11-01 (default: 30 days before its end)')
    .option('--to <day>', 'last day of the bill (default: today, UTC)')
    .option('--csv', 'print the bill as CSV')
    .option('--hours <number>', 'how far back, without --by', '24')
    .action(async ({ hours, by, from, to, csv, ...options }) => {
      if (by === undefined && (csv || from !== undefined || to !== undefined))
        throw new CliError('usage', '--csv, --from and --to are of the bill: name --by as well.');
      const connection = await findConnection(terminal, options);
      if (by !== undefined) {
        const query = { by, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
        const bill = await adminJson(connection, { path: '/usage', query, signal: terminal.signal });
        return options.json ? printJson(terminal, bill) : showBill(terminal, bill, csv ? 'csv' : 'table');
      }
      const [sessions, models] = await Promise.all(
        ['/sessions/usage', '/memories/usage'].map((path) =>
          adminJson(connection, { path, query: { hours }, signal: terminal.signal }),
        ),
      );
      if (options.json)
        return printJson(terminal, {
          ...{ sessions: listIn(sessions, 'usage'), models: listIn(models, 'usage') },
          more: [sessions, models].some((answer) => fieldOf(answer, 'more') === true),
        });
      show(terminal, 'No session was used in that time.', SESSIONS, sessions);
      print(terminal, '');
      show(terminal, 'No memory asked a model in that time.', MODELS, models);
    });
}

const SESSIONS: readonly Column[] = [
  ['KIND', (row) => textIn(row, 'kind')],
  ['STARTED', (row) => new Date(numberIn(row, 'startedAt')).toISOString()],
  ['SECONDS', (row) => Math.round((numberIn(row, 'lastSampleAt') - numberIn(row, 'startedAt')) / 1000).toString()],
  ['CPU SECONDS', (row) => numberIn(row, 'cpuSeconds').toFixed(2)],
  ['MEMORY MIB', (row) => (numberIn(row, 'memoryHighWaterBytes') / 1_048_576).toFixed(1)],
  ['STATE', (row) => (fieldOf(row, 'final') === true ? 'ended' : 'live')],
  ['RESOURCE', (row) => textIn(row, 'resourceArn').replace(/^([^:]*:){5}/, '')],
  ['SESSION', (row) => textIn(row, 'sessionId')],
];

const MODELS: readonly Column[] = [
  ['DAY', (row) => textIn(row, 'day')],
  ['MEMORY', (row) => textIn(row, 'memoryId')],
  ['STRATEGY', (row) => textIn(row, 'strategyId')],
  ['MODEL', (row) => textIn(row, 'model')],
  ['CALLS', (row) => textIn(row, 'calls')],
  ['INPUT', (row) => textIn(row, 'inputTokens')],
  ['OUTPUT', (row) => textIn(row, 'outputTokens')],
];

function show(terminal: Terminal, none: string, shown: readonly Column[], answer: unknown): void {
  const rows = listIn(answer, 'usage');
  if (rows.length === 0) {
    note(terminal, none);
    return;
  }
  const cells = rows.map((row) => shown.map(([, cell]) => harmless(cell(row))));
  for (const line of columns([shown.map(([heading]) => heading), ...cells])) print(terminal, line);
  if (fieldOf(answer, 'more') === true) note(terminal, `There are more: these are the newest ${rows.length}.`);
}

function numberIn(row: unknown, member: string): number {
  const found = fieldOf(row, member);
  return typeof found === 'number' ? found : 0;
}
