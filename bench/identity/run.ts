import { GetWorkloadAccessTokenCommand } from '@aws-sdk/client-bedrock-agentcore';
import { CreateWorkloadIdentityCommand, PutResourcePolicyCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { clientsOf } from '../../tests/support/clients.ts';
import { connectConsentProvider } from '../../tests/support/consent-platform.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { thisMachine } from '../support/machine.ts';
import { takeTurns } from './cached-token.ts';
import { verify } from './jwt-verification.ts';
import { type IdentityResults, keepResults, table } from './results.ts';
import { waitTogether } from './waiters.ts';

/** Of the token that a thousand wait for: most of it is left when the last of them is answered. */
const LIFE_SECONDS = 30;

/**
 * `npm run bench -- identity [--quick] [--keep]`: a cached token of an agent beside the cheapest signed operations of the same platform, taking
 * turns; tokens of users verified beside `jose` alone; a thousand who wait for one token that is over. Prints a table; `--keep` writes
 * bench/results/identity.json and docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const machine = thisMachine({});
  const platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  const clients = clientsOf(platform);
  const lasting = await connectConsentProvider(clients, 'lasting', undefined, { lifeSeconds: 86_400 });
  const short = await connectConsentProvider(clients, 'short', undefined, { lifeSeconds: LIFE_SECONDS });
  try {
    const workloadName = 'worker';
    const { workloadIdentityArn: resourceArn = '' } = await clients.control.send(
      new CreateWorkloadIdentityCommand({ name: workloadName }),
    );
    await clients.control.send(new PutResourcePolicyCommand({ resourceArn, policy: policyOf(resourceArn) }));
    const issued = await clients.data.send(new GetWorkloadAccessTokenCommand({ workloadName }));
    const tokenOf = (resourceCredentialProviderName: string) => ({
      path: '/identities/oauth2/token',
      body: {
        ...{ workloadIdentityToken: issued.workloadAccessToken, resourceCredentialProviderName },
        ...{ scopes: ['read'], oauth2Flow: 'M2M' },
      },
    });
    const operations = [
      { name: 'GetResourceOauth2Token', ...tokenOf('lasting') },
      { name: 'GetWorkloadAccessToken', path: '/identities/GetWorkloadAccessToken', body: { workloadName } },
      { name: 'ListAgentRuntimes', path: '/runtimes/', body: {} },
      { name: 'GetResourcePolicy', method: 'GET' as const, path: `/resourcepolicy/${encodeURIComponent(resourceArn)}` },
      { name: 'GetTokenVault', path: '/identities/get-token-vault', body: {} },
    ];
    const results: IdentityResults = {
      at: new Date().toISOString(),
      machine,
      tokens: await takeTurns(platform, operations, quick ? 10 : 100),
      verification: await verify(quick ? 20 : 200),
      waiters: await waitTogether(
        platform,
        { provider: short, lifeSeconds: LIFE_SECONDS },
        { ...tokenOf('short'), waiters: 1000 },
      ),
    };
    process.stdout.write(`${table(results)}\n`);
    if (args.includes('--keep')) await keepResults(results);
  } finally {
    clients.close();
    await platform.dispose();
    for (const one of [lasting, short]) await one.close();
  }
}

/** A policy of the usual size, for GetResourcePolicy to give. */
function policyOf(resourceArn: string): string {
  const account = resourceArn.split(':')[4];
  const Statement = {
    ...{ Sid: 'bench', Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` } },
    ...{ Action: 'bedrock-agentcore:GetWorkloadIdentity', Resource: resourceArn },
  };
  return JSON.stringify({ Version: '2012-10-17', Statement: [Statement] });
}
