import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { findConnection } from '../platform/connection.ts';
import { print, printJson, type Terminal } from '../terminal/terminal.ts';

export function envCommand(terminal: Terminal) {
  return platformCommand('env', {
    summary: 'Print the variables that point every AWS SDK at this platform.',
    examples: [
      {
        does: 'use AWS SDKs, boto3 and the aws command with the platform, in this shell',
        line: 'eval "$(agentcore env)"',
      },
    ],
  }).action(async (options) => {
    const connection = await findConnection(terminal, options);
    if (!connection.credentialsFile) {
      throw new CliError(
        'usage',
        `No credentials file is known for ${connection.endpoint}, which was named by ${connection.source}.`,
        'Run this where the platform’s .agentplatform/connection.json is, or set AWS_SHARED_CREDENTIALS_FILE.',
      );
    }
    const variables = {
      AWS_SHARED_CREDENTIALS_FILE: connection.credentialsFile,
      AWS_PROFILE: connection.profile ?? 'default',
      AWS_REGION: connection.region,
      AWS_ENDPOINT_URL: connection.endpoint,
    };
    if (options.json) return printJson(terminal, variables);
    for (const [name, value] of Object.entries(variables)) print(terminal, `export ${name}=${quoted(value)}`);
  });
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
