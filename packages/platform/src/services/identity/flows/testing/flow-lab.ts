import { randomUUID } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import pino from 'pino';
import { createJwtAuthenticator, createOidcDiscovery } from '../../../../kernel/auth/index.ts';
import { type Clock, systemClock } from '../../../../kernel/clock.ts';
import { createOutbound, type Outbound } from '../../../../kernel/outbound/index.ts';
import { configuredMasterKeys, createSecrets } from '../../../../kernel/secrets/index.ts';
import { type Caller, ofThePlatform } from '../../../../kernel/service.ts';
import { ChangeFeed, type Database, DatabaseUnavailableError } from '../../../../kernel/storage/index.ts';
import { silent } from '../../../../kernel/storage/testing/databases.ts';
import type { SecretsPort } from '../../../secrets/index.ts';
import { CredentialProviders } from '../../providers/credential-providers.ts';
import { type Oauth2Provider, type Oauth2Settings, storedOauth2 } from '../../providers/oauth2-provider.ts';
import { ProviderSecrets } from '../../providers/provider-secrets.ts';
import { TokenVaults } from '../../vault/token-vaults.ts';
import { WorkloadIdentities } from '../../workloads/workload-identities.ts';
import type { SubjectToken } from '../../workloads/workload-tokens.ts';
import type { WorkloadUser } from '../../workloads/workload-user.ts';
import { createFlows } from '../index.ts';
import type { TokenRequest } from '../token-request.ts';
import type { Returned } from '../user-federation.ts';
import { Browser } from './browser.ts';
import { type ConsentProvider, startConsentProvider } from './consent-provider.ts';

export const ACCOUNT = '111122223333';
export const RETURN_URL = 'https://app.example/back';
const PUBLIC = 'https://agents.example';

/** A clock that runs, and that a test puts on. */
export class PutOnClock implements Clock {
  #ahead = 0;
  readonly monotonic = systemClock.monotonic;
  readonly after = systemClock.after;
  now(): number {
    return Date.now() + this.#ahead;
  }
  jump(ms: number): void {
    this.#ahead += ms;
  }
}

const noSigner = (_algorithm: string, _bytes: Uint8Array): Buffer => {
  throw new Error('this lab has no key');
};

/** What one server does; `servers` of them share the database. */
export type Flows = ReturnType<typeof createFlows>;

/** Two servers on one database, and a way through their flows without HTTP of the platform's own. */
export async function openFlowLab(
  real: Database,
  {
    allowPrivate = ['127.0.0.0/8'],
    signer = noSigner,
    fetch,
  }: { allowPrivate?: string[]; signer?: typeof noSigner; fetch?: Outbound['fetch'] } = {},
) {
  const clock = new PutOnClock();
  let away = 0;
  const database: Database = Object.create(real, {
    transaction: {
      value: async (...given: Parameters<Database['transaction']>) => {
        if (away > 0) {
          away -= 1;
          throw new DatabaseUnavailableError('the database is away');
        }
        return real.transaction(...given);
      },
    },
  });
  const changes = await ChangeFeed.open({ database, leaseMs: 600_000, clock: systemClock, log: silent });
  const guarded = createOutbound({ allowPrivate, clock });
  const outbound: Outbound = fetch ? { ...guarded, fetch } : guarded;
  const keys = configuredMasterKeys(Buffer.alloc(32, 7).toString('base64'));
  const secrets = createSecrets({ database, keys, clock });
  const none = async (): Promise<never> => {
    throw errors.resourceNotFound('There is none.');
  };
  const sign: SecretsPort['sign'] = async (_arn, algorithm, bytes) => signer(algorithm, bytes);
  const stored = { read: none, sign, wrap: none, unwrap: none, need: none } as unknown as SecretsPort;
  const region = 'us-east-1';
  const warnings: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) });
  const server = (serverId: string) => {
    const parts = { database, changes, clock, region, secrets };
    const providers = new CredentialProviders<Oauth2Settings>({
      ...parts,
      kind: 'oauth2-credential-provider',
      shape: storedOauth2,
      secrets: new ProviderSecrets({ ...parts, externals: stored as never, newSecretSuffix: () => 'a1b2c3' }),
    });
    const identities = new WorkloadIdentities(parts);
    const jwt = createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound, clock }), clock });
    const vaults = new TokenVaults({ ...parts, keys: stored });
    const flows = createFlows({
      ...{ ...parts, stored, vaults, providers, identities, jwt, outbound, log },
      readObject: async () => undefined,
      publicUrl: () => PUBLIC,
      refusalOf: async () => undefined,
      random: () => 0.01,
      serverId,
    });
    return { flows, providers, identities, vaults };
  };
  const [first, second] = [server('one'), server('two')];
  await changes.start();
  const caller: Caller = ofThePlatform(ACCOUNT);
  const signal = new AbortController().signal;

  return {
    clock,
    /** Makes so many transactions fail. */
    failTransactions(count: number): void {
      away = count;
    },
    /** How many are still to fail. */
    toFail: () => away,
    first: first.flows,
    second: second.flows,
    providers: first.providers,
    identities: first.identities,
    vaults: first.vaults,
    /** What was logged as a warning. */
    warnings,
    caller,
    signal,
    async provider(settings: Partial<Oauth2Settings>, secret = 'a-client-secret-4711'): Promise<Oauth2Provider> {
      const data: Oauth2Settings = {
        id: randomUUID(),
        vendor: 'CustomOauth2',
        clientId: 'the-agents',
        oauthDiscovery: { discoveryUrl: 'https://nowhere.example/.well-known/openid-configuration' },
        clientAuthentication: 'CLIENT_SECRET_BASIC',
        ...settings,
      };
      const given = { value: secret, source: undefined, config: undefined };
      return first.providers.create({ name: `p-${data.id}`, data, secrets: { clientSecret: given } }, caller);
    },
    async workload(name: string): Promise<void> {
      await first.identities.create({ name, allowedResourceOauth2ReturnUrls: [RETURN_URL] }, ACCOUNT);
    },
    request(
      provider: Oauth2Provider,
      of: {
        user?: WorkloadUser;
        scopes?: readonly string[];
        workload?: string;
        subjectToken?: SubjectToken;
      } & Partial<TokenRequest> = {},
    ): TokenRequest {
      const { user, scopes = ['openid', 'read'], workload = 'assistant', subjectToken, ...more } = of;
      const bearer = { accountId: ACCOUNT, workload, user, madeAt: 1, ...(subjectToken && { subjectToken }) };
      const hint: Record<string, string> = user?.kind === 'id' ? { login_hint: user.id } : {};
      return { provider, bearer, scopes, resources: [], audiences: [], customParameters: hint, ...more };
    },
    /** What GetResourceOauth2Token answers. */
    ask: (
      flows: Flows,
      request: TokenRequest,
      call: { sessionUri?: string; returnUrl?: string; force?: boolean } = {},
    ) =>
      flows.federation.get(
        request,
        {
          sessionUri: call.sessionUri,
          returnUrl: call.returnUrl,
          customState: undefined,
          forceAuthentication: call.force ?? false,
        },
        { caller, signal },
      ),
    /** A person allows it in that browser and logs in; gives the address that the provider sends him back to. */
    async consent(flows: Flows, sessionUri: string, browser = 'browser-1', at = new Browser()): Promise<URL> {
      const authorization = await flows.federation.open(sessionUri);
      if (!authorization) throw new Error('there is nothing to allow');
      const { url } = await at.follow(
        await flows.federation.allow(authorization, browser),
        ({ origin }) => origin === PUBLIC,
      );
      return new URL(url);
    },
    /** The browser comes back. */
    back: (flows: Flows, url: URL, browser = 'browser-1'): Promise<Returned> =>
      flows.federation.returned({
        providerId: url.pathname.slice(url.pathname.lastIndexOf('/') + 1),
        parameters: url.searchParams,
        browser,
      }),
    async close() {
      await changes.close();
      await outbound.close();
    },
  };
}

/** The session that a browser brings back to the application. */
export function broughtBack(returned: Returned): string {
  if (returned.kind !== 'application') throw new Error(`the browser is not sent to the application: ${returned.kind}`);
  return new URL(returned.url).searchParams.get('session_id') ?? '';
}

export type FlowLab = Awaited<ReturnType<typeof openFlowLab>>;

/** A lab with a real authorization server, a provider that leads to it, and the agent `assistant`. */
export async function openConsentLab(
  real: Database,
): Promise<{ lab: FlowLab; server: ConsentProvider; provider: Oauth2Provider }> {
  const lab = await openFlowLab(real);
  const id = randomUUID();
  const server = await startConsentProvider({ redirectUris: [`${PUBLIC}/identities/oauth2/callback/${id}`] });
  const provider = await lab.provider({ id, oauthDiscovery: { discoveryUrl: server.discoveryUrl } });
  await lab.workload('assistant');
  return { lab, server, provider };
}
