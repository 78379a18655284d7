import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { adminFetch, adminJson } from '../platform/admin.ts';
import { findConnection } from '../platform/connection.ts';
import { harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';

/** The audit trail: whether it is whole, and all of it. */
export function auditCommand(terminal: Terminal) {
  return commandGroup('audit', 'Verify and export the audit trail.', [
    verifyAuditCommand(terminal),
    exportAuditCommand(terminal),
  ]);
}

function verifyAuditCommand(terminal: Terminal) {
  return platformCommand('verify', {
    summary: 'Verify that no row of the audit trail was changed, removed, reordered or cut off.',
    details:
      'Each server has a chain of rows. A finding names the chain and the place in it. Rows that retention has removed are closed by a signed checkpoint, and are no finding. Exit status 1 means that there are findings.',
    examples: [{ does: 'the whole trail', line: 'agentcore audit verify' }],
  }).action(async (options) => {
    const connection = await findConnection(terminal, options);
    const report = await adminJson(connection, { path: '/audit/verification', signal: terminal.signal });
    if (options.json) printJson(terminal, report);
    else show(terminal, report);
    if (fieldOf(report, 'intact') !== true)
      throw new CliError(
        'failure',
        'The audit trail is not as it was written.',
        'Find out who could write to the database, and compare with an export or a backup.',
      );
  });
}

function exportAuditCommand(terminal: Terminal) {
  return platformCommand('export', {
    summary: 'Export the audit trail as JSON Lines in the shape of CloudTrail events.',
    examples: [
      { does: 'all of it, into a file', line: 'agentcore audit export --output audit.jsonl' },
      { does: 'one day', line: 'agentcore audit export --from 2026-11-26 --to 2026-11-27' },
    ],
  })
    .option('--from <moment>', 'first moment, such as 2026-11-26 or 2026-11-26T09:30:00Z')
    .option('--to <moment>', 'moment before which it ends')
    .option('-o, --output <file>', 'file to write (default: standard output)')
    .action(async ({ from, to, output, ...options }) => {
      const connection = await findConnection(terminal, options);
      const query = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
      const { body } = await adminFetch(connection, { path: '/audit/records', query, signal: terminal.signal });
      const lines = body ? Readable.fromWeb(body) : Readable.from([]);
      if (output === undefined) await pipeline(lines, terminal.stdout, { end: false });
      else {
        await pipeline(lines, createWriteStream(output, { mode: 0o600 }));
        note(terminal, `The trail is in ${output}.`);
      }
    });
}

function show(terminal: Terminal, report: unknown): void {
  for (const chain of listIn(report, 'chains')) {
    const expired = fieldOf(chain, 'expired');
    const gone = expired ? `, ${textIn(expired, 'rows')} before them expired` : '';
    print(
      terminal,
      harmless(`${textIn(chain, 'chain')}: ${textIn(chain, 'rows')} rows up to ${textIn(chain, 'seq')}${gone}`),
    );
    print(terminal, `  head ${harmless(textIn(chain, 'hash'))}`);
  }
  const unchained = textIn(report, 'unchained');
  if (unchained !== '0')
    note(terminal, `${unchained} rows are from before there were chains, and nothing can be said of them.`);
  for (const finding of listIn(report, 'findings')) {
    const place = [textIn(finding, 'chain'), placeOf(finding)].filter(Boolean).join(' ');
    print(terminal, harmless(`${textIn(finding, 'what')} ${place}: ${textIn(finding, 'message')}`));
  }
  if (fieldOf(report, 'more') === true) note(terminal, 'There are more findings than these.');
  if (fieldOf(report, 'intact') === true) note(terminal, 'The audit trail is intact.');
}

function placeOf(finding: unknown): string {
  const [from, to] = [textIn(finding, 'from'), textIn(finding, 'to')];
  return from === to ? from : `${from}-${to}`;
}
