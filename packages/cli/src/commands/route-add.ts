import type { CreateGatewayRuleRequest, TargetTrafficSplitEntry } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findGateway } from '../platform/gateways.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

/** `agentcore add route`. */
export function addRouteCommand(terminal: Terminal) {
  return platformCommand('route', {
    summary: 'Add a rule that sends requests of a gateway to other targets.',
    details:
      'A request follows the first rule that it matches, by priority. A rule without conditions matches every request.',
    examples: [
      { does: 'a path', line: 'agentcore add route --path shop --to shop-v2' },
      { does: 'a tenth of it', line: 'agentcore add route --path shop --to shop-v1=90 shop-v2=10' },
      { does: 'one caller', line: 'agentcore add route --caller arn:aws:iam::123456789012:role/qa --to shop-v2' },
    ],
  })
    .option('--gateway <name>', 'name or id of the gateway (default: the only one)')
    .requiredOption('--to <targets...>', 'a target, or two with their shares of 100: a=90 b=10')
    .option('--path <words...>', 'only requests whose path below the gateway begins with this')
    .option('--caller <arns...>', 'only those of these users and roles; * and ? stand for any')
    .option('--priority <number>', '1 to 1000000; 1 is tried first', '1000')
    .option('--description <text>', 'what it is for')
    .action(async ({ gateway: wanted, to, path, caller, priority, ...options }) => {
      const client = await controlClient(await findConnection(terminal, options));
      const { gatewayId: gatewayIdentifier, name } = await findGateway(client, wanted);
      const { CreateGatewayRuleCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
      const { $metadata: _, ...rule } = await client.send(
        new CreateGatewayRuleCommand({
          ...{ gatewayIdentifier, priority: wholeNumber(priority), conditions: conditionsOf(path, caller) },
          actions: [{ routeToTarget: routeOf(to) }],
          ...(options.description !== undefined && { description: options.description }),
        }),
      );
      printDone(terminal, options.json, rule, `The route ${rule.ruleId} of ${name} is in force.`);
    });
}

function conditionsOf(paths: string[] | undefined, callers: string[] | undefined) {
  const conditions: NonNullable<CreateGatewayRuleRequest['conditions']> = [];
  if (paths) conditions.push({ matchPaths: { anyOf: paths.map((word) => `/${word}/*`) } });
  if (callers) {
    const anyOf = callers.map((arn) => ({ iamPrincipal: { arn, operator: 'StringLike' as const } }));
    conditions.push({ matchPrincipals: { anyOf } });
  }
  return conditions;
}

function routeOf(targets: string[]) {
  const [only = ''] = targets;
  if (targets.length === 1 && !only.includes('=')) return { staticRoute: { targetName: only } };
  const trafficSplit = targets.map((text): TargetTrafficSplitEntry => {
    const [targetName = '', share = ''] = text.split('=');
    return { targetName, name: targetName, weight: wholeNumber(share) };
  });
  if (trafficSplit.length === 2) return { weightedRoute: { trafficSplit } };
  throw new CliError('usage', 'A route has one target, or two with their shares.', 'Write --to a, or --to a=90 b=10.');
}

function wholeNumber(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new CliError('usage', `"${text}" is not a whole number.`);
}
