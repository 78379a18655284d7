import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findGateway } from '../platform/gateways.ts';
import { addRoute, type RouteCondition, type RouteStep, type RouteWish } from '../platform/routes.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

/** What a target can fail of beside a status, as it is written here and on the wire. */
const ERRORS: Readonly<Record<string, string>> = {
  connection: 'CONNECTION_ERROR',
  timeout: 'FIRST_BYTE_TIMEOUT',
  unroutable: 'UNROUTABLE',
};

/** `agentcore add route`. */
export function addRouteCommand(terminal: Terminal) {
  return platformCommand('route', {
    summary: 'Add a rule that sends requests of a gateway to other targets or models.',
    details:
      'A request follows the first rule that it matches, by priority. A rule without conditions matches every request.',
    examples: [
      { does: 'a path', line: 'agentcore add route --path shop --to shop-v2' },
      { does: 'a tenth of it', line: 'agentcore add route --path shop --to shop-v1=90 shop-v2=10' },
      { does: 'one caller', line: 'agentcore add route --caller arn:aws:iam::123456789012:role/qa --to shop-v2' },
      {
        does: 'another provider when the first one fails',
        line: 'agentcore add route --for-model "gpt-*" --to openai --fallback anthropic=claude-opus-4-6',
      },
      { does: 'another model', line: 'agentcore add route --for-model gpt-5 --to openai --model gpt-5-mini' },
    ],
  })
    .option('--gateway <name>', 'name or id of the gateway (default: the only one)')
    .requiredOption('--to <targets...>', 'a target, or two with their shares of 100: a=90 b=10')
    .option('--path <words...>', 'only requests whose path below the gateway begins with this')
    .option('--caller <arns...>', 'only those of these users and roles; * and ? stand for any')
    .option('--for-model <models...>', 'only those for these models, as clients name them; * and ? stand for any')
    .option('--model <id>', 'ask the target for this model instead')
    .option('--fallback <targets...>', 'one or two to ask when the target fails: TARGET or TARGET=MODEL')
    .option(
      '--fallback-on <failures...>',
      `what counts as that: statuses such as 429 and 5XX, ${Object.keys(ERRORS).join(', ')} (default: 5XX and all three)`,
    )
    .option('--first-byte-timeout <milliseconds>', 'how long the target may take to begin before the next is asked')
    .option('--priority <number>', '1 to 1000000; 1 is tried first', '1000')
    .option('--description <text>', 'what it is for')
    .action(async ({ gateway: wanted, to, priority, description, ...options }) => {
      const wish: RouteWish = {
        ...{ priority: wholeNumber(priority), conditions: conditionsOf(options) },
        actions: [{ routeToTarget: routeOf(to, stepOf(options)) }],
        ...(description !== undefined && { description }),
      };
      const connection = await findConnection(terminal, options);
      const { gatewayId = '', name } = await findGateway(await controlClient(connection), wanted);
      const route = await addRoute(connection, gatewayId, wish, terminal.signal);
      printDone(terminal, options.json, route, `The route ${route.ruleId} of ${name} is in force.`);
    });
}

interface ConditionFlags {
  path?: string[];
  caller?: string[];
  forModel?: string[];
}

function conditionsOf({ path, caller, forModel }: ConditionFlags): RouteCondition[] {
  const conditions: RouteCondition[] = [];
  if (path) conditions.push({ matchPaths: { anyOf: path.map((word) => `/${word}/*`) } });
  if (caller) {
    const anyOf = caller.map((arn) => ({ iamPrincipal: { arn, operator: 'StringLike' as const } }));
    conditions.push({ matchPrincipals: { anyOf } });
  }
  if (forModel) conditions.push({ matchModels: { anyOf: forModel.map((value) => ({ value })) } });
  return conditions;
}

interface StepFlags {
  model?: string;
  fallback?: string[];
  fallbackOn?: string[];
  firstByteTimeout?: string;
}

/** What is said of a target beside its name. Throws a `CliError` (usage). */
function stepOf({ model, fallback, fallbackOn, firstByteTimeout }: StepFlags): Omit<RouteStep, 'targetName'> {
  if (!fallback && (fallbackOn || firstByteTimeout !== undefined))
    throw new CliError('usage', '--fallback-on and --first-byte-timeout are of --fallback.');
  const named = model !== undefined && { model };
  if (!fallback) return { ...named };
  const targetFallback = fallback.map((text) => {
    const [targetName = '', ...rest] = text.split('=');
    return { targetName, ...(rest.length > 0 && { model: rest.join('=') }) };
  });
  const triggerOn = fallbackOn && triggersOf(fallbackOn);
  const firstByteTimeoutMilliseconds = firstByteTimeout === undefined ? undefined : wholeNumber(firstByteTimeout);
  return {
    ...named,
    fallback: {
      targetFallback,
      ...(triggerOn && { triggerOn }),
      ...(firstByteTimeoutMilliseconds !== undefined && { firstByteTimeoutMilliseconds }),
    },
  };
}

function triggersOf(words: readonly string[]): { statusCodes?: string[]; errors?: string[] } {
  const statusCodes = words.filter((word) => /^[45](?:XX|\d\d)$/.test(word));
  const errors = words.flatMap((word) => (Object.hasOwn(ERRORS, word) ? (ERRORS[word] ?? []) : []));
  const unknown = words.find((word) => !statusCodes.includes(word) && !Object.hasOwn(ERRORS, word));
  if (unknown !== undefined)
    throw new CliError(
      'usage',
      `"${unknown}" is no failure of a target.`,
      `Write statuses such as 429 or 5XX, or ${Object.keys(ERRORS).join(', ')}.`,
    );
  return { ...(statusCodes.length > 0 && { statusCodes }), ...(errors.length > 0 && { errors }) };
}

function routeOf(
  targets: string[],
  step: Omit<RouteStep, 'targetName'>,
): RouteWish['actions'][number]['routeToTarget'] {
  const [only = ''] = targets;
  if (targets.length === 1 && !only.includes('=')) return { staticRoute: { targetName: only, ...step } };
  const trafficSplit = targets.map((text) => {
    const [targetName = '', share = ''] = text.split('=');
    return { targetName, name: targetName, weight: wholeNumber(share), ...step };
  });
  if (trafficSplit.length === 2) return { weightedRoute: { trafficSplit } };
  throw new CliError('usage', 'A route has one target, or two with their shares.', 'Write --to a, or --to a=90 b=10.');
}

function wholeNumber(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new CliError('usage', `"${text}" is not a whole number.`);
}
