import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { findConnection } from '../platform/connection.ts';
import { columns, harmless, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf } from './iam-request.ts';

/** What to do about a step that fails. */
const REMEDIES: Readonly<Record<string, string>> = {
  discovery:
    'Check the address, and whether the platform may call it: private ranges are opened by the operator (--allow-private-egress).',
  tls: 'The certificate must be of an authority that is trusted; one of your own is named by certificateConfigurations.',
  metadata: 'Check the discovery URL: opened in a browser it shows JSON with issuer and token_endpoint.',
  'token endpoint': 'Check the server’s own log; the address is in its metadata.',
  'client authentication':
    'Check client id, client secret and the way in which the server takes them (--client-authentication).',
  scopes: 'Ask for scopes that this client has at its server.',
};

/** `agentcore identity test-provider`: which step of a provider's flow fails, and why. */
export function testProviderCommand(terminal: Terminal) {
  return platformCommand('test-provider', {
    summary: 'Try the flow of an OAuth2 provider step by step, and show which step fails and why.',
    details:
      'The platform asks the provider’s server as it does for an agent: discovery, TLS, metadata, token endpoint, client authentication, ' +
      'scopes. The token that it gets is thrown away. A client that is only for users gets no token; that is not a failure.',
    examples: [
      { does: 'test without scopes', line: 'agentcore identity test-provider orders' },
      {
        does: 'also the scopes that an agent asks for',
        line: 'agentcore identity test-provider orders --scope read --scope write',
      },
    ],
  })
    .argument('<name>', 'name of the provider')
    .option('--scope <scope...>', 'scopes to ask for')
    .action(async (name, { scope: scopes = [], ...flags }) => {
      const path = `/identity/oauth2-providers/${segment(name)}/test`;
      const request = { method: 'POST', path, body: { scopes }, signal: terminal.signal } as const;
      const found = await adminJson(await findConnection(terminal, flags), request);
      const steps = stepsOf(found);
      if (flags.json) printJson(terminal, found);
      else
        for (const line of columns(steps.map(({ step, status, message }) => [step, status, message])))
          print(terminal, line);
      const failed = steps.find(({ status }) => status === 'failed');
      if (failed)
        throw new CliError('failure', `The step "${failed.step}" fails: ${failed.message}`, REMEDIES[failed.step]);
    });
}

function stepsOf(found: unknown): { step: string; status: string; message: string }[] {
  const steps = fieldOf(found, 'steps');
  if (!Array.isArray(steps)) throw new CliError('failure', 'The platform answered without steps.');
  const member = (one: unknown, name: string): string => harmless(String(fieldOf(one, name)));
  return steps.map((one: unknown) => ({
    step: member(one, 'step'),
    status: member(one, 'status'),
    message: member(one, 'message'),
  }));
}
