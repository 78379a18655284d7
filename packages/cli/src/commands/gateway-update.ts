import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findGateway, updateGateway } from '../platform/gateways.ts';
import { keptOf } from '../platform/policies.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { accessOf } from './gateway-access.ts';
import { printDone } from './iam-request.ts';

/** `agentcore gateway update`: what no flag names stays as it is. */
export function updateCommand(terminal: Terminal) {
  return platformCommand('update', {
    summary: 'Change a gateway: who may call it, and what it offers.',
    details: 'What you leave out stays as it is. The address and the targets stay, too.',
    examples: [
      { does: 'add the tool that finds tools', line: 'agentcore gateway update shop --search' },
      {
        does: 'accept tokens from now on',
        line: 'agentcore gateway update shop --jwt https://id.example.com/.well-known/openid-configuration --audience shop',
      },
    ],
  })
    .argument('<gateway>', 'its name or id')
    .option('--jwt <discovery-url>', 'accept bearer tokens of the identity provider with this discovery URL')
    .option('--audience <audience...>', 'with --jwt: tokens must be for one of these')
    .option('--client <id...>', 'with --jwt: tokens must be issued to one of these clients')
    .option('--scope <scope...>', 'with --jwt: tokens must have one of these scopes')
    .option('--open', 'accept every request, without credentials')
    .option('--signed', 'take signed requests')
    .option('--search', 'add a tool that finds tools')
    .option('--no-search', 'take it away')
    .option('--explain-errors', 'also tell callers about errors inside the platform')
    .option('--no-explain-errors', 'do not tell callers about errors inside the platform')
    .option('--description <text>', 'what it is for')
    .option('--role <arn>', 'IAM role of the gateway')
    .action(async (wanted, { search, explainErrors, description, role, ...flags }) => {
      const access = accessOf(flags);
      const client = await controlClient(await findConnection(terminal, flags));
      const before = keptOf(await findGateway(client, wanted));
      const { searchType, ...mcp } = before.protocolConfiguration?.mcp ?? {};
      const wish = search ?? searchType !== undefined;
      const updated = await updateGateway(client, {
        ...{ ...before, roleArn: role ?? before.roleArn, description: description ?? before.description },
        ...(access && { authorizerConfiguration: undefined, ...access }),
        exceptionLevel: (explainErrors ?? before.exceptionLevel === 'DEBUG') ? 'DEBUG' : undefined,
        protocolConfiguration: { mcp: { ...mcp, ...(wish && { searchType: 'SEMANTIC' }) } },
      });
      printDone(terminal, flags.json, updated, `${before.name} is updated.\n${updated.gatewayUrl}`);
    });
}
