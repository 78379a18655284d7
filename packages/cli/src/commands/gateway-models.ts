import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { gatewayFetch } from '../platform/gateway-client.ts';
import { columns, harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';
import { BY_TOKEN, gatewayOption, type Reached, reachGateway } from './reach-gateway.ts';

/** `agentcore gateway models`. */
export function modelsCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('models', {
      summary: 'List the models behind a gateway.',
      details: `Models that a target names by a pattern are not listed. ${BY_TOKEN}`,
      examples: [{ does: 'what clients can ask for', line: 'agentcore gateway models' }],
    }),
  ).action(async ({ gateway: wanted, ...options }) => {
    const reached = await reachGateway(terminal, options, wanted);
    const answer = await ask(reached, '/v1/models', terminal.signal);
    const models = listIn(answer, 'data');
    if (options.json) return printJson(terminal, models);
    if (models.length === 0)
      return note(terminal, 'Its targets name no models. A target without names takes those that its provider has.');
    const rows = models.map((model) => [textIn(model, 'id'), textIn(model, 'owned_by')].map(harmless));
    for (const line of columns([['MODEL', 'TARGET'], ...rows])) print(terminal, line);
  });
}

/** `agentcore gateway try-model`. */
export function tryModelCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('try-model', {
      summary: 'Send one prompt to a model behind a gateway, and show its answer and its tokens.',
      details: BY_TOKEN,
      examples: [{ does: 'one question', line: 'agentcore gateway try-model gpt-5.5 "Say hello"' }],
    }),
  )
    .argument('<model>', 'as clients name it: MODEL, or TARGET/MODEL')
    .argument('[prompt]', 'what it is asked', 'Say hello.')
    .action(async (model, content, { gateway: wanted, ...options }) => {
      const reached = await reachGateway(terminal, options, wanted);
      const body = { model, messages: [{ role: 'user', content }] };
      const answer = await ask(reached, '/v1/chat/completions', terminal.signal, body);
      if (options.json) return printJson(terminal, answer);
      const [choice] = listIn(answer, 'choices');
      print(terminal, harmless(textIn(fieldOf(choice, 'message'), 'content')));
      const usage = fieldOf(answer, 'usage');
      note(terminal, `${textIn(usage, 'prompt_tokens')} tokens in, ${textIn(usage, 'completion_tokens')} out`);
    });
}

/** `agentcore gateway usage`. */
export function usageCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('usage', {
      summary: 'Show how many tokens callers used of the models behind a gateway.',
      details:
        'Each attempt counts as a call, including fallbacks. The provider counts the tokens. If a stream ended early, they are estimated. Usage is kept by the hour.',
      examples: [
        { does: 'the last 24 hours', line: 'agentcore gateway usage' },
        { does: 'the last week', line: 'agentcore gateway usage --hours 168' },
      ],
    }),
  )
    .option('--hours <number>', 'how far back', '24')
    .action(async ({ gateway: wanted, hours, ...options }) => {
      const { connection, id } = await reachGateway(terminal, options, wanted);
      const path = `/gateways/${segment(id)}/usage`;
      const usage = listIn(await adminJson(connection, { path, query: { hours }, signal: terminal.signal }), 'usage');
      if (options.json) return printJson(terminal, usage);
      if (usage.length === 0) return note(terminal, 'Nobody asked a model in that time.');
      const rows = usage.map((row) => MEMBERS.map(([member]) => harmless(textIn(row, member))));
      for (const line of columns([MEMBERS.map(([, head]) => head), ...rows])) print(terminal, line);
    });
}

const MEMBERS = [
  ['target', 'TARGET'],
  ['model', 'MODEL'],
  ['caller', 'CALLER'],
  ['calls', 'CALLS'],
  ['failed', 'FAILED'],
  ['estimated', 'ESTIMATED'],
  ['inputTokens', 'INPUT'],
  ['outputTokens', 'OUTPUT'],
] as const;

/** What the gateway answers below `/inference`. Rejects with a `CliError` that has its words. */
async function ask(
  { connection, baseUrl, access }: Reached,
  path: string,
  signal: AbortSignal,
  body?: object,
): Promise<unknown> {
  const url = `${baseUrl}/inference${path}`;
  const init = body && {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
  };
  const reply = await gatewayFetch(connection, access)(url, { ...init, signal });
  const text = await reply.text();
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (reply.ok && said !== undefined) return said;
  const message = textIn(fieldOf(said, 'error'), 'message') || textIn(said, 'message') || `status ${reply.status}`;
  throw new CliError(reply.status === 404 ? 'notFound' : 'failure', `The gateway gave no answer: ${harmless(message)}`);
}
