import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import type { GetPolicyResponse, PolicyGenerationAsset } from '@aws-sdk/client-bedrock-agentcore-control';
import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findGateway } from '../platform/gateways.ts';
import { addPolicy, addPolicyEngine, attachGateway, findPolicyEngine, generatePolicies } from '../platform/policies.ts';
import { isDogwood } from '../policies/statement.ts';
import { harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

/** `agentcore add policy-engine`. */
export function addPolicyEngineCommand(terminal: Terminal) {
  return platformCommand('policy-engine', {
    summary: 'Add a policy engine: rules that say who may call which tool, and how.',
    details:
      'A gateway that is attached with ENFORCE lets through only what a policy permits. With LOG_ONLY it lets everything through and keeps what would have been blocked: agentcore policy report.',
    examples: [
      {
        does: 'and look first what it would block',
        line: 'agentcore add policy-engine --name refunds --attach-to-gateways shop --attach-mode LOG_ONLY',
      },
      {
        does: 'and enforce it',
        line: 'agentcore add policy-engine --name refunds --attach-to-gateways shop --attach-mode ENFORCE',
      },
    ],
  })
    .requiredOption('--name <name>', 'letters, digits and _')
    .option('--attach-to-gateways <gateways...>', 'names or ids of gateways, with blanks or commas between them')
    .addOption(
      new Option('--attach-mode <mode>', 'what policies do there')
        .choices(['LOG_ONLY', 'ENFORCE'] as const)
        .default('ENFORCE' as const),
    )
    .option('--description <text>', 'what it is for')
    .action(async ({ name, attachToGateways = [], attachMode: mode, description, ...options }) => {
      const client = await controlClient(await findConnection(terminal, options));
      const named = attachToGateways.flatMap((one) => one.split(',')).filter((one) => one !== '');
      // Before anything is made: a name may be wrong.
      const gateways = await Promise.all(named.map((one) => findGateway(client, one)));
      const engine = await addPolicyEngine(client, { name, description });
      for (const gateway of gateways) await attachGateway(client, gateway, { arn: engine.policyEngineArn ?? '', mode });
      const attached = gateways.length > 0 ? ` ${gateways.map((one) => one.name).join(', ')}: ${mode}.` : '';
      printDone(terminal, options.json, engine, `The policy engine ${name} is there.${attached}`);
    });
}

/** `agentcore add policy`. */
export function addPolicyCommand(terminal: Terminal) {
  return platformCommand('policy', {
    summary: 'Add a policy to a policy engine, from a file or from a sentence.',
    details:
      'A policy is checked against the tools of the gateway that it names, or of those that are attached. A sentence becomes policies by the model that the platform is set up with.',
    examples: [
      { does: 'from a file', line: 'agentcore add policy --name refunds --engine shop --source refunds.cedar' },
      {
        does: 'from a sentence',
        line: 'agentcore add policy --name refunds --engine shop --generate "only finance may refund more than 500"',
      },
    ],
  })
    .requiredOption('--name <name>', 'letters, digits and _')
    .option('--engine <engine>', 'name or id of the policy engine (default: the only one)')
    .addOption(
      new Option('--source <file>', 'file with one statement of Cedar or Dogwood; - reads standard input').conflicts(
        'generate',
      ),
    )
    .option('--generate <sentence>', 'what is to be allowed or forbidden, in plain words')
    .option('--gateway <gateway>', 'with --generate: the gateway whose tools it is about (default: the only one)')
    .addOption(
      new Option('--validation-mode <mode>', 'what findings of the analysis do')
        .choices(['FAIL_ON_ANY_FINDINGS', 'IGNORE_ALL_FINDINGS'] as const)
        .default('FAIL_ON_ANY_FINDINGS' as const),
    )
    .addOption(
      new Option('--enforcement-mode <mode>', 'whether it decides, or only says what it would decide')
        .choices(['ACTIVE', 'LOG_ONLY'] as const)
        .default('ACTIVE' as const),
    )
    .option('--description <text>', 'what it is for')
    .action(async ({ name, engine: wanted, source, generate, gateway, validationMode, ...options }) => {
      const { enforcementMode, description } = options;
      if ((source === undefined) === (generate === undefined))
        throw new CliError('usage', 'A policy comes from a file or from a sentence: --source FILE or --generate "…".');
      const client = await controlClient(await findConnection(terminal, options));
      const { policyEngineId = '' } = await findPolicyEngine(client, wanted);
      const wish = {
        policyEngineId,
        validationMode,
        enforcementMode,
        ...(description !== undefined && { description }),
      };
      const add = (named: string, definition: Parameters<typeof addPolicy>[1]['definition']) =>
        addPolicy(client, { ...wish, name: named, definition }, terminal.signal);
      if (source !== undefined) {
        const statement = await readSource(terminal, source);
        const policy = await add(name, isDogwood(statement) ? { policy: { statement } } : { cedar: { statement } });
        return tell(terminal, options.json, [policy]);
      }
      const { gatewayArn = '' } = await findGateway(client, gateway);
      note(terminal, 'A model writes the policies …');
      const sentence = generate ?? '';
      // Each try is a generation of its own.
      const attempt = `${name.slice(0, 39)}_${randomBytes(4).toString('hex')}`;
      const asked = { policyEngineId, name: attempt, gatewayArn, sentence };
      const { policyGenerationId, assets } = await generatePolicies(client, asked, terminal.signal);
      const usable = assets.filter(isUsable);
      if (!options.json) for (const asset of assets) showAsset(terminal, asset);
      const policies: GetPolicyResponse[] = [];
      for (const [i, { policyGenerationAssetId = '' }] of usable.entries()) {
        const named = usable.length === 1 ? name : `${name}_${i + 1}`;
        policies.push(await add(named, { policyGeneration: { policyGenerationId, policyGenerationAssetId } }));
      }
      if (policies.length === 0) throw new CliError('failure', 'No policy came of it that fits the tools.');
      tell(terminal, options.json, policies);
      if (usable.length < assets.length)
        throw new CliError('failure', 'Not every part of the sentence became a policy: see above.');
    });
}

/** Prints what came of them. Throws a `CliError` where one was refused. */
function tell(terminal: Terminal, json: boolean | undefined, policies: readonly GetPolicyResponse[]): void {
  if (json) printJson(terminal, policies.length === 1 ? policies[0] : policies);
  for (const { name, policyId, status, statusReasons = [] } of policies) {
    if (!json) print(terminal, harmless(`${name} (${policyId}) is ${status}.`));
    for (const reason of statusReasons) for (const line of reason.split('\n')) note(terminal, harmless(line));
  }
  if (policies.some(({ status }) => status !== 'ACTIVE'))
    throw new CliError('failure', 'A policy was refused: it decides nothing.', 'Correct it, and update or delete it.');
}

function showAsset(
  terminal: Terminal,
  { rawTextFragment = '', definition, findings = [] }: PolicyGenerationAsset,
): void {
  print(terminal, harmless(`"${rawTextFragment}"`));
  const statement = definition?.cedar?.statement ?? definition?.policy?.statement;
  for (const line of (statement ?? 'no policy').split('\n')) print(terminal, harmless(`  ${line}`));
  for (const { type, description } of findings)
    note(terminal, harmless(type === undefined ? (description ?? '') : `${type}: ${description ?? ''}`));
}

/** Whether a policy fits the tools; what the analysis thinks of it is for CreatePolicy. */
function isUsable({ definition, findings = [] }: PolicyGenerationAsset): boolean {
  return definition !== undefined && !findings.some(({ type }) => type === 'INVALID' || type === 'NOT_TRANSLATABLE');
}

async function readSource(terminal: Terminal, file: string): Promise<string> {
  try {
    return (file === '-' ? await readText(terminal.stdin) : await readFile(resolve(terminal.cwd, file), 'utf8')).trim();
  } catch (cause) {
    throw new CliError('usage', `The file ${file} cannot be read.`, String(cause));
  }
}
