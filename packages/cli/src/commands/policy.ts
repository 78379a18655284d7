import { readFile } from 'node:fs/promises';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findPolicyEngine } from '../platform/policies.ts';
import { columns, harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';
import { checkCommand, diffCommand } from './policy-check.ts';

/** What policies decide, and have decided. */
export function policyCommand(terminal: Terminal) {
  return commandGroup('policy', 'Check policies, and see what they have decided, and why.', [
    checkCommand(terminal),
    diffCommand(terminal),
    reportCommand(terminal),
    explainCommand(terminal),
  ]);
}

const ROWS = [
  ['gateway', 'GATEWAY'],
  ['action', 'TOOL'],
  ['principal', 'CALLER'],
  ['calls', 'CALLS'],
  ['denied', 'DENIED'],
  ['wouldBlock', 'WOULD BLOCK'],
  ['policies', 'POLICIES'],
] as const;

function reportCommand(terminal: Terminal) {
  return platformCommand('report', {
    summary: 'Show what policies have blocked, and what enforcing them would have blocked.',
    details:
      'WOULD BLOCK counts calls that went through because the gateway or a policy is LOG_ONLY. Without POLICIES no policy permits them.',
    examples: [
      { does: 'the last week', line: 'agentcore policy report' },
      { does: 'the last day, of one engine', line: 'agentcore policy report --engine refunds --days 1' },
    ],
  })
    .option('--engine <engine>', 'name or id of the policy engine (default: the only one)')
    .option('--days <number>', 'how far back', '7')
    .action(async ({ engine, days, ...options }) => {
      const connection = await findConnection(terminal, options);
      const { policyEngineId = '' } = await findPolicyEngine(await controlClient(connection), engine);
      const path = `/policy-engines/${segment(policyEngineId)}/report`;
      const answer = await adminJson(connection, { path, query: { days }, signal: terminal.signal });
      const rows = listIn(answer, 'rows');
      if (options.json) return printJson(terminal, rows);
      if (rows.length === 0) return note(terminal, 'Nothing was decided in that time.');
      const lines = rows.map((row) => ROWS.map(([member]) => harmless(textIn(row, member))));
      for (const line of columns([ROWS.map(([, head]) => head), ...lines])) print(terminal, line);
    });
}

const MEMBERS = [
  'requestId',
  'action',
  'principal',
  'mode',
  'phase',
  'decision',
  'wouldBe',
  'policies',
  'errors',
  'digest',
  'sessionId',
  'durationUs',
] as const;

function explainCommand(terminal: Terminal) {
  return platformCommand('explain', {
    summary: 'Show how one call was decided; with its input, decide it again by the policies of now.',
    details:
      'The id of a request is in the answer (x-amzn-requestid) and in the log. Of an input only a digest is kept: give the input itself to have it decided again, in its policy session as it was then.',
    examples: [
      { does: 'as it was decided', line: 'agentcore policy explain 0f8b…' },
      { does: 'and by the policies of now', line: 'agentcore policy explain 0f8b… --input \'{"amount": 700}\'' },
    ],
  })
    .argument('<request-id>', 'the id of the request')
    .option('--engine <engine>', 'name or id of the policy engine (default: the only one)')
    .option('--input <json>', 'what the tool was called with, or @FILE')
    .action(async (requestId, { engine, input: given, ...options }) => {
      const input = given === undefined ? undefined : await inputOf(given);
      const connection = await findConnection(terminal, options);
      const { policyEngineId = '' } = await findPolicyEngine(await controlClient(connection), engine);
      const path = `/policy-engines/${segment(policyEngineId)}/explain`;
      const request = { method: 'POST' as const, path, body: { requestId, input }, signal: terminal.signal };
      const decisions = listIn(await adminJson(connection, request), 'decisions');
      if (options.json) return printJson(terminal, decisions);
      if (decisions.length === 0) throw new CliError('notFound', 'No decision on this request is kept.');
      for (const one of decisions) {
        for (const member of MEMBERS) {
          const text = textIn(one, member);
          if (text !== '') print(terminal, harmless(`${member.padEnd(12)} ${text}`));
        }
        const now = fieldOf(one, 'now');
        if (now !== undefined)
          print(
            terminal,
            harmless(`now          ${textIn(now, 'decision')} ${textIn(now, 'determining')} ${textIn(now, 'errors')}`),
          );
        const why = textIn(one, 'notReplayed');
        if (why !== '') note(terminal, harmless(`Not decided again: ${why}`));
      }
    });
}

async function inputOf(given: string): Promise<unknown> {
  try {
    return JSON.parse(given.startsWith('@') ? await readFile(given.slice(1), 'utf8') : given);
  } catch (cause) {
    throw new CliError('usage', 'The input is not JSON.', String(cause));
  }
}
