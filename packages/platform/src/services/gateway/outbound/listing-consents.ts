import type { Clock } from '../../../kernel/clock.ts';
import { number, object, type Shape, text } from '../../../kernel/stored-shape.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { Target, TargetDefinition } from '../targets/target.ts';
import type { TargetCredentials } from './target-credentials.ts';

export interface ListingConsentsDeps {
  credentials: Pick<TargetCredentials, 'consent'>;
  clock: Pick<Clock, 'now'>;
  newIdSuffix(): string;
}

/** Whose consent lists the tools of an MCP server, and the one that is awaited. */
export interface ListingConsent {
  /** Stands for the gateway at the target, and for nobody who calls. */
  userId: string;
  /** The address at which a person consents. */
  url?: string | undefined;
  sessionUri?: string | undefined;
  /** Milliseconds since the epoch until the link counts. */
  until?: number | undefined;
}

export const storedConsent: Shape<ListingConsent> = object(
  { userId: text },
  { url: text, sessionUri: text, until: number },
);

/** Lifetime of a consent request in milliseconds, as Identity has it for every consent. */
const LIFE_MS = 600_000;
const LONGEST_GATEWAY_ID = 100;

/** Whether the tools of such a target are listed with a token that a person consents to: nobody calls then whose own it could be. */
export function needsConsentToList({
  targetConfiguration: { mcp },
  credentialProviderConfigurations: [configuration],
}: TargetDefinition): boolean {
  const server = mcp?.mcpServer;
  const { grantType } = configuration?.credentialProvider?.oauthCredentialProvider ?? {};
  return (
    server !== undefined &&
    !server.mcpToolSchema &&
    server.listingMode !== 'DYNAMIC' &&
    grantType === 'AUTHORIZATION_CODE'
  );
}

/** Consents of an administrator, with which a gateway lists the tools of MCP servers (spec: target states `…_PENDING_AUTH`). */
export class ListingConsents {
  readonly #deps: ListingConsentsDeps;

  constructor(deps: ListingConsentsDeps) {
    this.#deps = deps;
  }

  /** For a target that is to be listed: with a link where a person has to consent first. Undefined where nobody has to. Rejects as Identity does. */
  async begin(
    gateway: Gateway,
    { id, consent: before }: Pick<Target, 'id' | 'consent'>,
    definition: TargetDefinition,
    signal: AbortSignal,
  ): Promise<ListingConsent | undefined> {
    if (!needsConsentToList(definition)) return undefined;
    const { clock, newIdSuffix, credentials } = this.#deps;
    const userId = before?.userId ?? `${gateway.id.slice(0, LONGEST_GATEWAY_ID)}_${id}_${newIdSuffix()}`;
    const asked = await credentials.consent(gateway, definition, { userId, sessionUri: undefined, signal });
    if (asked.accessToken !== undefined) return { userId };
    return { userId, url: asked.authorizationUrl, sessionUri: asked.sessionUri, until: clock.now() + LIFE_MS };
  }

  /** Whether the awaited consent was given, is still awaited, or why it will not come. */
  async stateOf(
    gateway: Gateway,
    { userId, sessionUri, until = 0 }: ListingConsent,
    definition: TargetDefinition,
    signal: AbortSignal,
  ): Promise<'given' | 'awaited' | { failure: string }> {
    if (sessionUri === undefined) return 'given';
    const asked = await this.#deps.credentials.consent(gateway, definition, { userId, sessionUri, signal });
    if (asked.accessToken !== undefined) return 'given';
    if (asked.sessionStatus === 'IN_PROGRESS') return 'awaited';
    const late = this.#deps.clock.now() >= until;
    const why = late ? 'nobody consented within ten minutes' : 'it was denied, or failed at the provider';
    return {
      failure: `The consent with which the tools would be listed did not come: ${why}. Update or synchronize the target to get a new link.`,
    };
  }
}
