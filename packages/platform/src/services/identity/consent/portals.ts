import { type control, errors, parseResourceArn, resourceArn } from '@agentplatform/contract';
import { checkPassedRole } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import {
  type Database,
  fromResource,
  MissingResourceError,
  nameTaken,
  type Page,
  ResourceStore,
} from '../../../kernel/storage/index.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Provider, Oauth2Settings } from '../providers/oauth2-provider.ts';
import { CONSENT_PORTAL_KIND, type ConsentPortal, type PortalData, storedPortal } from './portal.ts';
import type { PortalSessions } from './portal-sessions.ts';

export interface PortalsDeps {
  database: Database;
  clock: Clock;
  region: string;
  providers: CredentialProviders<Oauth2Settings>;
  sessions: PortalSessions;
  roleExists(arn: string): Promise<boolean>;
  newIdSuffix(): string;
}

/** Of an account. */
const MOST_PORTALS = 100;

/** The consent portals of accounts. A portal is ACTIVE once it is made: nothing of it is made later. */
export class Portals {
  readonly #deps: PortalsDeps;
  readonly #store: ResourceStore<PortalData>;

  constructor(deps: PortalsDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<PortalData>({
      ...{ executor: deps.database, clock: deps.clock, kind: CONSENT_PORTAL_KIND, most: MOST_PORTALS },
      ...storedPortal,
    });
  }

  arnOf(accountId: string, id: string): string {
    return resourceArn('consent-portal', { region: this.#deps.region, accountId }, id);
  }

  /** Rejects with ConflictException when the name is taken, and as `#check`. */
  async create(input: control.CreateConsentPortalRequest, ctx: RequestContext): Promise<ConsentPortal> {
    const { name, description, executionRoleArn, idpConfig, sources, tags = {} } = input;
    const data: PortalData = { description, executionRoleArn, idpConfig, sources };
    await this.#check(data, ctx);
    const { accountId } = ctx;
    const id = `${name}-${this.#deps.newIdSuffix()}`;
    try {
      return fromResource(
        await this.#store.create({ arn: this.arnOf(accountId, id), accountId, id, name, data, tags }),
      );
    } catch (error) {
      throw nameTaken(error, 'A consent portal', 'Update or delete it, or choose another name.');
    }
  }

  /** Undefined when there is none of this id. */
  async find(accountId: string, id: string): Promise<ConsentPortal | undefined> {
    const found = await this.#store.get(this.arnOf(accountId, id));
    return found && fromResource(found);
  }

  /** The same; rejects with ResourceNotFoundException. */
  async get(accountId: string, id: string): Promise<ConsentPortal> {
    const found = await this.find(accountId, id);
    if (found) return found;
    throw missing(id);
  }

  /** Ends the sessions of those who had signed in otherwise. Rejects with ResourceNotFoundException, and as `#check`. */
  async update(input: control.UpdateConsentPortalRequest, ctx: RequestContext): Promise<ConsentPortal> {
    const { consentPortalIdentifier: id, ...given } = input;
    const { executionRoleArn, idpConfig, description, sources, arn } = await this.get(ctx.accountId, id);
    const wanted: PortalData = {
      executionRoleArn: given.executionRoleArn ?? executionRoleArn,
      idpConfig: given.idpConfig ?? idpConfig,
      description: given.description ?? description,
      sources,
    };
    await this.#check(wanted, ctx);
    try {
      return await this.#deps.database.transaction(async (tx) => {
        const changed = await this.#store.within(tx).modify(arn, () => wanted);
        if (given.idpConfig) await this.#deps.sessions.endAll(arn, tx);
        return fromResource(changed);
      });
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(id) : error;
    }
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<Page<ConsentPortal>> {
    const { items, ...next } = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: items.map(fromResource), ...next };
  }

  /** With its sessions; what people have granted stands. Rejects with ResourceNotFoundException. */
  async delete(accountId: string, id: string): Promise<void> {
    const arn = this.arnOf(accountId, id);
    await this.#deps.database.transaction(async (tx) => {
      if (!(await this.#store.within(tx).delete(arn))) throw missing(id);
      await this.#deps.sessions.endAll(arn, tx);
    });
  }

  /** The provider that people sign in by; undefined when it is gone. */
  async signIn({ accountId, idpConfig }: ConsentPortal): Promise<Oauth2Provider | undefined> {
    return this.#deps.providers.find(accountId, nameIn(idpConfig.credentialProviderArn));
  }

  /** Rejects with ValidationException, ResourceNotFoundException, and AccessDeniedException for a role that is not the caller's to pass. */
  async #check({ executionRoleArn, idpConfig, sources }: PortalData, ctx: RequestContext): Promise<void> {
    const { accountId } = ctx;
    const { region, providers } = this.#deps;
    await checkPassedRole(ctx, { roleArn: executionRoleArn, field: 'executionRoleArn' }, this.#deps);
    const field = 'idpConfig.credentialProviderArn';
    const name = nameIn(idpConfig.credentialProviderArn);
    if (providers.arnOf(accountId, name) !== idpConfig.credentialProviderArn)
      throw errors.invalidField(field, 'is not an OAuth2 credential provider of this account');
    const { data } = await providers.get(accountId, name);
    if (data.oauthDiscovery.discoveryUrl === undefined)
      throw errors.invalidField(field, `names ${name}, which has no discovery document: nobody could sign in by it`);
    for (const { identifier } of sources) {
      const arn = parseResourceArn(identifier);
      if (arn && (arn.accountId !== accountId || arn.region !== region))
        throw errors.invalidField('sources', `names a gateway of another account or region: ${identifier}`);
    }
  }
}

function nameIn(arn: string): string {
  return arn.slice(arn.lastIndexOf('/') + 1);
}

function missing(id: string): Error {
  return errors.resourceNotFound(`There is no consent portal ${id} in this account.`, {
    remedy: 'ListConsentPortals lists those that exist.',
  });
}
