import { text as readText } from 'node:stream/consumers';
import type { TargetConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { gatewayClient } from '../platform/gateway-client.ts';
import { findGateway, listGateways, removeFromGateway, showTargets, synchronizeTargets } from '../platform/gateways.ts';
import { listRateLimits, removeRateLimit } from '../platform/rate-limits.ts';
import { listRoutes, type RouteCondition, type RouteStep, type RouteWish, removeRoute } from '../platform/routes.ts';
import { columns, harmless, note, print, printJson, type Terminal, typed } from '../terminal/terminal.ts';
import { guardCommand } from './gateway-guard.ts';
import { importCommand } from './gateway-import.ts';
import { modelsCommand, tryModelCommand, usageCommand } from './gateway-models.ts';
import { updateCommand } from './gateway-update.ts';
import { fieldOf, printDone, printList, printMembers } from './iam-request.ts';
import { BY_TOKEN, gatewayOption, reachGateway } from './reach-gateway.ts';

/** Tools behind one address. */
export function gatewayCommand(terminal: Terminal) {
  return commandGroup('gateway', 'Look at gateways, call their tools, and make tools of an API.', [
    importCommand(terminal),
    listCommand(terminal),
    showCommand(terminal),
    updateCommand(terminal),
    synchronizeCommand(terminal),
    toolsCommand(terminal),
    callCommand(terminal),
    searchCommand(terminal),
    limitsCommand(terminal),
    modelsCommand(terminal),
    tryModelCommand(terminal),
    usageCommand(terminal),
    guardCommand(terminal),
    routesCommand(terminal),
    removeCommand(terminal),
  ]);
}

function listCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List gateways.',
    examples: [{ does: 'names, ids and how callers authenticate', line: 'agentcore gateway list' }],
  }).action(async (options) => {
    const gateways = await listGateways(await controlClient(await findConnection(terminal, options)));
    const none = typed(terminal, 'There is no gateway yet. Make one: agentcore add gateway NAME');
    const fields = ['name', 'gatewayId', 'authorizerType', 'status'];
    printList(terminal, options.json, { gateways }, { member: 'gateways', fields, none });
  });
}

function showCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('show', {
      summary: 'Show a gateway: its address, how callers authenticate, and its targets with their states.',
      examples: [
        { does: 'the only one', line: 'agentcore gateway show' },
        { does: 'its address in a script', line: 'agentcore gateway show --gateway shop --json | jq -r .gatewayUrl' },
      ],
    }),
  ).action(async ({ gateway: wanted, ...options }) => {
    const client = await controlClient(await findConnection(terminal, options));
    const { $metadata: _, ...gateway } = { $metadata: undefined, ...(await findGateway(client, wanted)) };
    const targets = await showTargets(client, gateway.gatewayId ?? '');
    if (options.json) return printJson(terminal, { ...gateway, targets });
    printMembers(terminal, false, gateway, [
      'name',
      'gatewayId',
      'gatewayUrl',
      'authorizerType',
      'status',
      'description',
    ]);
    for (const reason of gateway.statusReasons ?? []) note(terminal, harmless(reason));
    if (targets.length === 0)
      return note(terminal, typed(terminal, 'It has no target yet. Add one: agentcore add target NAME --openapi FILE'));
    const rows = targets.map(({ name, targetConfiguration, status }) =>
      [name ?? '', typeOf(targetConfiguration), status ?? ''].map(harmless),
    );
    print(terminal, '');
    for (const line of columns([['TARGET', 'TYPE', 'STATUS'], ...rows])) print(terminal, line);
    for (const { name, statusReasons = [] } of targets)
      for (const reason of statusReasons) note(terminal, harmless(`${name}: ${reason}`));
  });
}

/** What a target is, as its configuration calls it. */
function typeOf(configuration: TargetConfiguration | undefined): string {
  const [kind = ''] = Object.keys(configuration?.mcp ?? configuration ?? {});
  return kind;
}

function synchronizeCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('synchronize', {
      summary: 'Fetch the tools, prompts and resources of a gateway’s MCP servers again.',
      examples: [
        { does: 'all of them', line: 'agentcore gateway synchronize' },
        { does: 'one of them', line: 'agentcore gateway synchronize --target docs' },
      ],
    }),
  )
    .option('--target <name>', 'only this target')
    .action(async ({ gateway: wanted, target, ...options }) => {
      const client = await controlClient(await findConnection(terminal, options));
      const { gatewayId: gatewayIdentifier = '' } = await findGateway(client, wanted);
      const targets = await synchronizeTargets(client, { gatewayIdentifier, target }, terminal.signal);
      if (options.json) printJson(terminal, { targets });
      for (const { name, status, statusReasons = [] } of targets) {
        if (!options.json) print(terminal, harmless(`${name} is ${status}.`));
        for (const reason of statusReasons) note(terminal, harmless(`${name}: ${reason}`));
      }
      if (targets.some(({ status }) => status !== 'READY'))
        throw new CliError('failure', 'Some servers did not answer. What they offered before stays.');
    });
}

function toolsCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('tools', {
      summary: 'List the tools of a gateway, as an agent sees them.',
      details: BY_TOKEN,
      examples: [
        { does: 'names and what they do', line: 'agentcore gateway tools' },
        { does: 'the whole schemas', line: 'agentcore gateway tools --json' },
      ],
    }),
  ).action(async ({ gateway: wanted, ...options }) => {
    const client = await connect(terminal, options, wanted);
    try {
      const { tools } = await client.listTools();
      if (options.json) return printJson(terminal, tools);
      if (tools.length === 0) return note(terminal, 'It has no tools.');
      const rows = tools.map(({ name, description = '' }) => [name, firstLine(description)].map(harmless));
      for (const line of columns([['TOOL', 'WHAT IT DOES'], ...rows])) print(terminal, line);
    } finally {
      await client.close();
    }
  });
}

function callCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('call', {
      summary: 'Call a tool of a gateway.',
      details: `Exit status 1 says that the tool answered with an error. ${BY_TOKEN}`,
      examples: [
        { does: 'with arguments', line: 'agentcore gateway call shop___getOrder \'{"id": "7"}\'' },
        { does: 'the whole result', line: 'agentcore gateway call shop___getOrder \'{"id": "7"}\' --json' },
      ],
    }),
  )
    .argument('<tool>', 'name of the tool, as agentcore gateway tools shows it')
    .argument('[arguments]', 'JSON object; - reads standard input', '{}')
    .action(async (name, text, { gateway: wanted, ...options }) => {
      const given = await argumentsOf(terminal, text);
      const client = await connect(terminal, options, wanted);
      try {
        const result = await client.callTool({ name, arguments: given }, { signal: terminal.signal });
        if (options.json) printJson(terminal, result);
        else for (const line of linesOf(result)) print(terminal, harmless(line));
        if (result.isError) throw new CliError('failure', `The tool ${name} answered with an error.`);
      } finally {
        await client.close();
      }
    });
}

function searchCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('search', {
      summary: 'Find the tools of a gateway that fit a task.',
      details: `The gateway must have search: agentcore add gateway NAME --search. ${BY_TOKEN}`,
      examples: [{ does: 'in plain words', line: 'agentcore gateway search "cancel an order"' }],
    }),
  )
    .argument('<task>', 'what you want to do')
    .action(async (query, { gateway: wanted, ...options }) => {
      const client = await connect(terminal, options, wanted);
      try {
        const { structuredContent } = await client.callTool({ name: 'x_agentplatform_search', arguments: { query } });
        printList(terminal, options.json, structuredContent, {
          ...{ member: 'tools', fields: ['name', 'description'], none: 'No tool fits.' },
        });
        const said = fieldOf(structuredContent, 'note');
        if (typeof said === 'string') note(terminal, harmless(said));
      } finally {
        await client.close();
      }
    });
}

function limitsCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('limits', {
      summary: 'List the rate limits of a gateway.',
      examples: [{ does: 'limits, and the requests that each counts', line: 'agentcore gateway limits' }],
    }),
  ).action(async ({ gateway: wanted, ...options }) => {
    const client = await controlClient(await findConnection(terminal, options));
    const { gatewayId = '' } = await findGateway(client, wanted);
    const limits = await listRateLimits(client, gatewayId);
    if (options.json) return printJson(terminal, limits);
    if (limits.length === 0)
      return note(terminal, typed(terminal, 'It has no limit. Add one: agentcore add limit NAME --per caller …'));
    const rows = limits.flatMap(({ rateLimitId = '', dimensionKeys = [], entries = [] }) =>
      entries.map(({ dimensions, requests = [], tokens = [], connections = [] }) => {
        const values = dimensionKeys.map((key) => `${key}=${dimensions?.[key]}`).join(' ');
        const rates = [
          ...requests.map(({ rate, period }) => `${rate} requests a ${period}`),
          ...tokens.map(({ rate, period }) => `${rate} tokens a ${period}`),
          ...connections.map(({ rate }) => `${rate} at the same time`),
        ];
        return [rateLimitId, values, rates.join(', ')].map(harmless);
      }),
    );
    for (const line of columns([['LIMIT', 'OF REQUESTS WITH', 'LETS THROUGH'], ...rows])) print(terminal, line);
  });
}

function routesCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('routes', {
      summary: 'List the routes of a gateway, in the order in which they are tried.',
      examples: [{ does: 'which requests go where', line: 'agentcore gateway routes' }],
    }),
  ).action(async ({ gateway: wanted, ...options }) => {
    const connection = await findConnection(terminal, options);
    const { gatewayId = '' } = await findGateway(await controlClient(connection), wanted);
    const routes = await listRoutes(connection, gatewayId, terminal.signal);
    if (options.json) return printJson(terminal, routes);
    if (routes.length === 0)
      return note(terminal, typed(terminal, 'It has no route. Add one: agentcore add route --path WORD --to TARGET'));
    const rows = routes.map(({ ruleId, priority, conditions = [], actions = [] }) =>
      [ruleId, String(priority), conditions.map(saysOf).join(' and ') || 'all', actions.map(leadsTo).join(', ')].map(
        harmless,
      ),
    );
    for (const line of columns([['ROUTE', 'PRIORITY', 'REQUESTS', 'GO TO'], ...rows])) print(terminal, line);
  });
}

/** What requests of a route have, in a few words. */
function saysOf({ matchPaths, matchPrincipals, matchModels }: RouteCondition): string {
  const callers = matchPrincipals?.anyOf?.map(({ iamPrincipal }) => `caller ${iamPrincipal?.arn}`) ?? [];
  const models = matchModels?.anyOf.map(({ value }) => `model ${value}`) ?? [];
  return [...(matchPaths?.anyOf ?? []), ...callers, ...models].join(' or ');
}

function leadsTo({ routeToTarget: { staticRoute, weightedRoute } }: RouteWish['actions'][number]): string {
  const steps = weightedRoute?.trafficSplit ?? (staticRoute ? [staticRoute] : []);
  const named = ({ targetName, model }: Pick<RouteStep, 'targetName' | 'model'>): string =>
    model === undefined ? targetName : `${targetName}/${model}`;
  const words = steps.map((step) => {
    const share = 'weight' in step ? `=${step.weight}` : '';
    return [`${named(step)}${share}`, ...(step.fallback?.targetFallback ?? []).map(named)].join(', then ');
  });
  return words.join(' ');
}

function removeCommand(terminal: Terminal) {
  return platformCommand('remove', {
    summary: 'Remove a gateway with its targets, or one target, limit or route of it.',
    examples: [
      { does: 'the gateway and all its targets', line: 'agentcore gateway remove shop' },
      { does: 'one target', line: 'agentcore gateway remove shop --target orders' },
      { does: 'one route, by the id that gateway routes shows', line: 'agentcore gateway remove shop --route ID' },
    ],
  })
    .argument('<gateway>', 'its name or id')
    .option('--target <name>', 'only this target of it')
    .option('--limit <name>', 'only this rate limit of it')
    .option('--route <id>', 'only this route of it')
    .action(async (wanted, { target, limit, route, ...options }) => {
      const parts = Object.entries({ target, limit, route }).filter(([, part]) => part !== undefined);
      if (parts.length > 1) throw new CliError('usage', 'Remove a target, a limit or a route, one at a time.');
      const client = await controlClient(await findConnection(terminal, options));
      const { gatewayId = '', name } = await findGateway(client, wanted);
      if (limit !== undefined) await removeRateLimit(client, gatewayId, limit);
      else if (route !== undefined) await removeRoute(client, gatewayId, route);
      else await removeFromGateway(client, gatewayId, target);
      const [[kind, part] = []] = parts;
      const what = kind === undefined ? `The gateway ${name}` : `The ${kind} ${part} of ${name}`;
      const removed = { gatewayId, target, limit, route, removed: true };
      printDone(terminal, options.json, removed, `${what} is removed.`);
    });
}

async function connect(terminal: Terminal, flags: Parameters<typeof findConnection>[1], wanted: string | undefined) {
  const { connection, gatewayUrl, access } = await reachGateway(terminal, flags, wanted);
  return gatewayClient(connection, gatewayUrl, access);
}

async function argumentsOf(terminal: Terminal, text: string): Promise<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text === '-' ? await readText(terminal.stdin) : text);
  } catch {
    // Said below, as for any other value that is no object.
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new CliError('usage', 'The arguments of a tool are a JSON object.', 'For example: \'{"id": "7"}\'');
}

function linesOf({ content }: { content: readonly { type: string; text?: string; mimeType?: string }[] }): string[] {
  return content.map(({ type, text, mimeType }) => text ?? `(${type}${mimeType === undefined ? '' : `, ${mimeType}`})`);
}

function firstLine(text: string): string {
  const [line = ''] = text.split('\n');
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}
