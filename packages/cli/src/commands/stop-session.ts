import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { dataClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { resolveRuntime } from '../platform/runtimes.ts';
import { print, printJson, type Terminal } from '../terminal/terminal.ts';
import { checkSessionId, lastSession } from './invoke.ts';

export function stopSessionCommand(terminal: Terminal) {
  return platformCommand('stop-session', {
    summary: 'End a session, and delete its memory and disk.',
    examples: [
      { does: 'end the session of the last call from here', line: 'agentcore stop-session' },
      {
        does: 'end a session by its id',
        line: 'agentcore stop-session 3f0c8c1e-6d0b-4d59-9f0a-6f1f4c1b7a11 --agent my_agent',
      },
    ],
  })
    .argument('[session]', 'id of the session (default: that of the last call from this folder)')
    .option('-a, --agent <name>', 'agent by name, id or ARN (default: the one in this folder)')
    .option('-q, --qualifier <endpoint>', 'endpoint of the agent (default: DEFAULT)')
    .action(async (session, options) => {
      if (session !== undefined)
        checkSessionId(
          session,
          'Leave it out for the session of the last call from this folder; agentcore status shows the running ones.',
        );
      const { StopRuntimeSessionCommand } = await import('@aws-sdk/client-bedrock-agentcore');
      const connection = await findConnection(terminal, options);
      const runtime = await resolveRuntime(terminal, connection, options.agent);
      const runtimeSessionId = session ?? (await lastSession(runtime, connection, options.qualifier));
      const client = await dataClient(connection);
      const { statusCode } = await client.send(
        new StopRuntimeSessionCommand({
          agentRuntimeArn: runtime.arn,
          runtimeSessionId,
          ...(options.qualifier ? { qualifier: options.qualifier } : {}),
        }),
      );
      if (statusCode !== undefined && statusCode >= 400)
        throw new CliError('failure', `The platform answered ${statusCode}.`);
      if (options.json) printJson(terminal, { sessionId: runtimeSessionId, stopped: true });
      else print(terminal, `Session ${runtimeSessionId} has ended.`);
    });
}
