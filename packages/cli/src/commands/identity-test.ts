import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { columns, harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf } from './iam-request.ts';
import { secondsOption } from './options.ts';
import { readSecret } from './read-secret.ts';

/** What to do about a step that fails. */
const REMEDIES: Readonly<Record<string, string>> = {
  discovery:
    'Check the address, and whether the platform may call it. The operator opens private addresses with --allow-private-egress.',
  tls: 'The certificate must come from a trusted CA. Name a CA of your own in certificateConfigurations.',
  metadata: 'Check the discovery URL. In a browser it must show JSON with issuer and token_endpoint.',
  'authorization page': 'Name a server that has one, or test another flow: --flow m2m.',
  consent: 'Check that the server has the redirect URI of the provider (agentcore identity show NAME), and the scopes.',
  'user token': 'Give a valid token of a user: a JWT whose issuer publishes its keys to the platform.',
  'token endpoint': 'Check the server’s own log; the address is in its metadata.',
  'client authentication':
    'Check the client id, the client secret, and how the server expects them (--client-authentication).',
  grant: 'Check at the server that the client may use this flow.',
  scopes: 'Ask for scopes that this client has at its server.',
};

/** The flows in the words of this program, and of the wire. */
const FLOWS = { m2m: 'M2M', user: 'USER_FEDERATION', 'on-behalf-of': 'ON_BEHALF_OF_TOKEN_EXCHANGE' } as const;
type Flow = keyof typeof FLOWS;
const ASK_EVERY_MS = 1_000;

interface Step {
  step: string;
  status: string;
  message: string;
}

/** `agentcore identity test-provider`: which step of a provider's flow fails, and why. */
export function testProviderCommand(terminal: Terminal) {
  return platformCommand('test-provider', {
    summary: 'Try the flow of an OAuth2 provider step by step, and show which step fails and why.',
    details:
      'The platform asks the provider’s server as it does for an agent, and throws the token away. Without --flow it tries the flow that fits the provider: ' +
      'token exchange if the provider has it, otherwise a token of the client itself, otherwise the consent of a user. At vendors such as Google it tries consent. ' +
      'For a consent it prints a link. Open it and allow the access: the command waits for that, and then revokes it.',
    examples: [
      {
        does: 'with the scopes that an agent asks for',
        line: 'agentcore identity test-provider orders --scope read --scope write',
      },
      { does: 'a person’s consent', line: 'agentcore identity test-provider calendar --flow user --scope openid' },
      {
        does: 'an exchange of a user’s token',
        line: 'agentcore identity test-provider crm --user-token --audience https://crm.example < token.txt',
      },
    ],
  })
    .argument('<name>', 'name of the provider')
    .addOption(
      new Option('--flow <flow>', 'the flow to try (default: the one that fits the provider)').choices(
        Object.keys(FLOWS) as Flow[],
      ),
    )
    .option('--scope <scope...>', 'scopes to ask for')
    .option('--audience <audience...>', 'audience of the token')
    .option('--user-token', 'exchange a token of a user, from standard input or a prompt')
    .option('--timeout <seconds>', 'how long to wait for the consent at most', secondsOption, 600)
    .action(async (name, { flow, scope: scopes = [], audience: audiences = [], userToken, timeout, ...flags }) => {
      const connection = await findConnection(terminal, flags);
      const test = testerOf(connection, name, terminal.signal);
      const usage = `agentcore identity test-provider ${name} --user-token < token.txt`;
      const found = await test({
        ...{ scopes, audiences },
        ...(flow !== undefined && { flow: FLOWS[flow] }),
        ...(userToken && { userToken: await readSecret(terminal, 'the user’s token', usage) }),
      });
      const begun = stepsOf(found);
      const [link, sessionUri] = [fieldOf(found, 'authorizationUrl'), fieldOf(found, 'sessionUri')];
      if (typeof link === 'string') note(terminal, `Open this page and allow the access:\n${harmless(link)}`);
      const later =
        typeof sessionUri === 'string' ? await consented(() => test({ sessionUri }), timeout, terminal) : [];
      const steps = begun.map((one) => later.find(({ step }) => step === one.step) ?? one);
      if (flags.json) printJson(terminal, { name, flow: fieldOf(found, 'flow'), steps });
      else
        for (const line of columns(steps.map(({ step, status, message }) => [step, status, message])))
          print(terminal, line);
      const amiss = steps.find(({ status }) => status === 'failed' || status === 'waiting');
      if (!amiss) return;
      const what = amiss.status === 'failed' ? 'fails' : `was not done within ${timeout} s`;
      throw new CliError('failure', `The step "${amiss.step}" ${what}: ${amiss.message}`, REMEDIES[amiss.step]);
    });
}

type Tester = (body: object) => Promise<unknown>;

function testerOf(connection: Connection, name: string, signal: AbortSignal): Tester {
  const path = `/identity/oauth2-providers/${segment(name)}/test`;
  return (body) => adminJson(connection, { method: 'POST', path, body, signal });
}

/** What became of the consent; as it stands when the time is over. */
async function consented(ask: () => Promise<unknown>, seconds: number, { signal }: Terminal): Promise<Step[]> {
  const until = performance.now() + seconds * 1000;
  for (;;) {
    const steps = stepsOf(await ask());
    const waits = steps.some(({ status }) => status === 'waiting');
    if (!waits || performance.now() >= until) return steps;
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
}

function stepsOf(found: unknown): Step[] {
  const steps = fieldOf(found, 'steps');
  if (!Array.isArray(steps)) throw new CliError('failure', 'The platform answered without steps.');
  const member = (one: unknown, name: string): string => harmless(String(fieldOf(one, name)));
  return steps.map((one: unknown) => ({
    step: member(one, 'step'),
    status: member(one, 'status'),
    message: member(one, 'message'),
  }));
}
