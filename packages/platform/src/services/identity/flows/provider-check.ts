import { ServiceError } from '@agentplatform/contract';
import { asOutboundError } from '../../../kernel/outbound/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import { AuthorizationServers, type AuthorizationServersDeps } from './authorization-servers.ts';
import type { OauthClients } from './oauth-clients.ts';
import { ProviderError } from './provider-error.ts';
import type { TokenEndpoint } from './token-endpoint.ts';
import { grantParameters } from './token-request.ts';

/** The steps of a flow, in the order in which they are gone. */
export const CHECKED_STEPS = [
  'discovery',
  'tls',
  'metadata',
  'token endpoint',
  'client authentication',
  'scopes',
] as const;

export type CheckedStepName = (typeof CHECKED_STEPS)[number];

/** `skipped`: a step before it failed, or there was nothing to look at. */
export interface CheckedStep {
  step: CheckedStepName;
  status: 'passed' | 'failed' | 'skipped';
  /** What was found, or why it fails; has nothing of a secret. */
  message: string;
}

export interface ProviderCheckDeps extends AuthorizationServersDeps {
  clients: Pick<OauthClients, 'of'>;
  endpoint: Pick<TokenEndpoint, 'ask'>;
}

/** What a check found, so far. */
class Findings {
  readonly #found = new Map<CheckedStepName, Omit<CheckedStep, 'step'>>();

  say(step: CheckedStepName, status: CheckedStep['status'], message: string): void {
    this.#found.set(step, { status, message });
  }

  steps(): CheckedStep[] {
    return CHECKED_STEPS.map((step) => ({
      step,
      ...(this.#found.get(step) ?? { status: 'skipped', message: 'A step before it failed.' }),
    }));
  }
}

/**
 * Walks the flow of a provider as an agent's request would, with nothing from memory, up to a token of its own (client credentials), which is
 * thrown away. Rejects with the signal's reason alone: what is wrong with the provider is what it finds.
 */
export async function checkProvider(
  provider: Oauth2Provider,
  scopes: readonly string[],
  deps: ProviderCheckDeps,
  { caller, signal }: { caller: Caller; signal: AbortSignal },
): Promise<CheckedStep[]> {
  const findings = new Findings();
  if (await checkServer(provider, findings, deps)) await checkClient(provider, scopes, findings, deps, caller, signal);
  signal.throwIfAborted();
  return findings.steps();
}

/** Discovery, TLS and metadata; false when one of them fails. */
async function checkServer(
  { data }: Oauth2Provider,
  findings: Findings,
  deps: AuthorizationServersDeps,
): Promise<boolean> {
  const { discoveryUrl } = data.oauthDiscovery;
  if (discoveryUrl === undefined) {
    findings.say('discovery', 'skipped', 'The provider names the addresses itself.');
    findings.say('tls', 'skipped', 'There is no document to fetch.');
  }
  try {
    const server = await new AuthorizationServers(deps).find(data.oauthDiscovery, data.certificateAuthority);
    if (discoveryUrl !== undefined) reached(discoveryUrl, findings);
    const page = server.authorization_endpoint;
    const consent = page === undefined ? ' It has no page for users: USER_FEDERATION does not work.' : '';
    findings.say('metadata', 'passed', `${server.issuer} has tokens at ${server.token_endpoint}.${consent}`);
    return true;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (isTls(error)) {
      findings.say('discovery', 'passed', `${discoveryUrl} answers.`);
      findings.say('tls', 'failed', `${message} (${tlsCode(error)})`);
    } else if (asOutboundError(error) && !isDocument(error)) findings.say('discovery', 'failed', message);
    else {
      if (discoveryUrl !== undefined) reached(discoveryUrl, findings);
      findings.say('metadata', 'failed', message);
    }
    return false;
  }
}

function reached(discoveryUrl: string, findings: Findings): void {
  findings.say('discovery', 'passed', `${discoveryUrl} answers.`);
  if (new URL(discoveryUrl).protocol === 'https:') findings.say('tls', 'passed', 'Its certificate is believed.');
  else findings.say('tls', 'skipped', 'The address is plain HTTP.');
}

/** Token endpoint, client authentication and scopes: all three are asked by one grant. */
async function checkClient(
  provider: Oauth2Provider,
  scopes: readonly string[],
  findings: Findings,
  { clients, endpoint }: ProviderCheckDeps,
  caller: Caller,
  signal: AbortSignal,
): Promise<void> {
  const wanted = { scopes, resources: [], audiences: [], customParameters: {} };
  const parameters = grantParameters(wanted, VENDORS[provider.data.vendor].scopeSeparator);
  try {
    const client = await clients.of(provider, caller);
    const { scope } = await endpoint.ask(client, { type: 'client_credentials', parameters }, signal);
    answered(findings);
    findings.say('client authentication', 'passed', 'It took the client.');
    granted(scopes, scope, findings);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof ServiceError) {
      // The secret or key is not to be had: nothing was asked.
      findings.say('token endpoint', 'skipped', 'It was not asked.');
      findings.say('client authentication', 'failed', message);
    } else refused(error instanceof ProviderError ? error.code : undefined, message, findings);
  }
}

/** A server may give less than was asked for (RFC 6749, section 3.3); it says so then. */
function granted(scopes: readonly string[], scope: string | undefined, findings: Findings): void {
  const given = scope === undefined ? scopes : scope.split(/[ ,]+/);
  const missing = scopes.filter((one) => !given.includes(one));
  if (scopes.length === 0) findings.say('scopes', 'skipped', 'None were asked for.');
  else if (missing.length > 0) findings.say('scopes', 'failed', `It gave a token without: ${missing.join(' ')}.`);
  else findings.say('scopes', 'passed', `It gave a token for: ${scopes.join(' ')}.`);
}

/** By the code of OAuth (RFC 6749, section 5.2), which says how far the request came. */
function refused(code: string | undefined, message: string, findings: Findings): void {
  if (code === undefined || !KNOWN.has(code)) {
    findings.say('token endpoint', 'failed', message);
    return;
  }
  answered(findings);
  if (code === 'invalid_client') {
    findings.say('client authentication', 'failed', message);
    return;
  }
  findings.say('client authentication', 'passed', 'It took the client.');
  if (code === 'invalid_scope') findings.say('scopes', 'failed', message);
  else findings.say('scopes', 'skipped', `The client gets no token of its own, M2M does not work: ${message}`);
}

const KNOWN = new Set(['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope']);

function answered(findings: Findings): void {
  findings.say('token endpoint', 'passed', 'It answers.');
}

/** Whether the server answered, and what it said could not be read. */
function isDocument(error: unknown): boolean {
  const code = asOutboundError(error)?.code;
  return code === 'BAD_JSON' || code === 'BAD_ENCODING' || code === 'TOO_LARGE';
}

function isTls(error: unknown): boolean {
  return tlsCode(error) !== undefined;
}

/** What Node calls a certificate that it does not believe, or a server that does not speak TLS. */
function tlsCode(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string' && TLS_CODE.test(at.code)) return at.code;
  return undefined;
}

const TLS_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$|INVALID_CA$)/;
