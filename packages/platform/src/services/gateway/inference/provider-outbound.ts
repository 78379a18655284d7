import type { Outbound } from '../../../kernel/outbound/index.ts';
import type { Credential } from '../outbound/credential.ts';
import type { TargetGuard } from '../outbound/target-guard.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Speech } from './providers.ts';

export interface ProviderOutboundDeps {
  /** The guard: who makes a target names addresses. */
  outbound: Outbound;
  guard: Pick<TargetGuard, 'run'>;
}

/** What client libraries put a key into. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'x-goog-api-key'];

/**
 * The way to the provider of one target: what its client library sends, with the target's credential instead of the library's own, at the
 * path that the target says.
 */
export function providerOutbound(
  { target, speech, credential }: { target: LiveTarget; speech: Speech; credential: Credential },
  { outbound, guard }: ProviderOutboundDeps,
): Pick<Outbound, 'fetch'> {
  return {
    async fetch(input, request = {}) {
      const url = atProvider(new URL(input), speech);
      for (const [name, value] of credential.query) url.searchParams.set(name, value);
      const own = Object.entries(request.headers ?? {}).filter(([name]) => !KEY_HEADERS.includes(name.toLowerCase()));
      const headers = { ...Object.fromEntries(own), ...inItsPlace(target, speech, credential) };
      const unsigned = { method: request.method ?? 'GET', url, headers };
      const body = typeof request.body === 'string' ? Buffer.from(request.body) : undefined;
      const signed = await credential.sign?.({ ...unsigned, ...(body && { body }), service: 'bedrock-mantle' });
      const sent = signed ?? unsigned;
      const ca = target.live.certificateAuthority;
      return guard.run(target, () =>
        outbound.apart().fetch(sent.url, { ...request, headers: { ...sent.headers }, ...(ca !== undefined && { ca }) }),
      );
    },
  };
}

/** The target's own path for an operation, where it has another than the format. */
function atProvider(url: URL, { operation: { path, providerPath }, url: base }: Speech): URL {
  const root = new URL(base).pathname.replace(/\/(?:v1|v1beta)?$/, '');
  if (providerPath !== undefined && url.pathname === `${root}${path}`) url.pathname = `${root}${providerPath}`;
  return url;
}

/** A key where its vendor wants it, unless the target says where it goes. */
function inItsPlace(
  { live }: LiveTarget,
  { provider }: Speech,
  { headers, secrets }: Credential,
): Record<string, string> {
  const { apiKeyCredentialProvider: named } = live.credentialProviderConfigurations[0]?.credentialProvider ?? {};
  const { credentialParameterName, credentialPrefix, credentialLocation } = named ?? {};
  const [key] = secrets;
  const said = credentialParameterName ?? credentialPrefix ?? (credentialLocation === 'QUERY_PARAMETER' || undefined);
  if (!named || said !== undefined || key === undefined) return { ...headers };
  if (provider === 'anthropic') return { 'x-api-key': key };
  return provider === 'gemini' ? { 'x-goog-api-key': key } : { authorization: `Bearer ${key}` };
}
