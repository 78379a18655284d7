import type { LimitEntry, RateConfig } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findGateway } from '../platform/gateways.ts';
import { addRateLimit } from '../platform/rate-limits.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

/** Short words for dimensions; any other word is one itself. */
const DIMENSIONS: Readonly<Record<string, string>> = {
  target: 'targetName',
  tool: 'toolName',
  model: 'qualifiedModelId',
  caller: '$.context.iam.principal',
  user: '$.context.jwt.sub',
  'source-identity': '$.context.iam.sourceIdentity',
};

/** `agentcore add limit`. */
export function addLimitCommand(terminal: Terminal) {
  return platformCommand('limit', {
    summary: 'Limit the requests to a gateway. A limit of that name is changed.',
    details: `Requests that have the same values count together. The words for --per are ${Object.keys(DIMENSIONS).join(', ')}, and any dimension of the API, such as $.context.jwt.team.`,
    examples: [
      { does: 'a limit for each caller', line: 'agentcore add limit fair --per caller --requests 60/minute' },
      {
        does: 'less for one tool',
        line: 'agentcore add limit tools --per tool --for orders___buy --requests 2/second',
      },
      {
        does: 'what each caller takes from one model',
        line: 'agentcore add limit tokens --per model caller --for openai/gpt-5.5 --tokens 20000/minute',
      },
      { does: 'at the same time', line: 'agentcore add limit busy --per target --connections 10' },
    ],
  })
    .argument('<name>', 'letters, digits, - _ and .')
    .option('--gateway <name>', 'name or id of the gateway (default: the only one)')
    .requiredOption('--per <dimensions...>', 'what requests must have in common to be counted together')
    .option('--for <values...>', 'only these values of --per, in its order (default: each value is counted separately)')
    .option('--requests <rate>', 'such as 5/second or 100/minute; 0/second refuses all')
    .option('--tokens <rate>', 'tokens of models, input and output, such as 20000/minute')
    .option('--connections <number>', 'requests that may be under way at the same time')
    .option('--description <text>', 'what it is for')
    .action(
      async (rateLimitId, { gateway: wanted, per, for: values = [], requests, tokens, connections, ...options }) => {
        if (values.length > per.length)
          throw new CliError('usage', 'There are more values than dimensions.', 'Name a dimension for each: --per.');
        const dimensionKeys = per.map((word) => (Object.hasOwn(DIMENSIONS, word) ? (DIMENSIONS[word] ?? word) : word));
        const entry: LimitEntry = {
          dimensions: Object.fromEntries(dimensionKeys.map((key, i) => [key, values[i] ?? '*'])),
          ...(requests !== undefined && { requests: [rateOf(requests)] }),
          ...(tokens !== undefined && { tokens: [rateOf(tokens)] }),
          ...(connections !== undefined && { connections: [{ rate: countOf(connections), period: 'second' }] }),
        };
        if (!entry.requests && !entry.tokens && !entry.connections)
          throw new CliError('usage', 'Give a limit: --requests, --tokens or --connections.');
        const client = await controlClient(await findConnection(terminal, options));
        const { gatewayId: gatewayIdentifier = '', name } = await findGateway(client, wanted);
        const { description } = options;
        const limit = await addRateLimit(client, { gatewayIdentifier, rateLimitId, dimensionKeys, entry, description });
        printDone(terminal, options.json, limit, `The limit ${rateLimitId} of ${name} is in force.`);
      },
    );
}

function rateOf(text: string): RateConfig {
  const [, rate = '', period = ''] = /^(\d+(?:\.\d+)?)\/(second|minute)$/.exec(text) ?? [];
  if (period === 'second' || period === 'minute') return { rate: Number(rate), period };
  throw new CliError('usage', `"${text}" is not a rate.`, 'Write for example 5/second or 100/minute.');
}

function countOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new CliError('usage', `"${text}" is not a number of connections.`);
}
