import type { control } from '@agentplatform/contract';
import type { Iam, IamPrincipal, SessionCredentials, SigningCredentials } from '../../../kernel/auth/index.ts';
import { signRequest } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { ToolError } from '../tool-error.ts';
import type { Credential } from './credential.ts';
import { gatewaySession } from './gateway-session.ts';
import { coversHost, type RoleKeys, readRoleKeys } from './role-keys.ts';

export interface BackendSigningDeps {
  roles: Pick<Iam, 'issueRoleCredentials' | 'issueForwarded'>;
  /** Where this platform is reached, such as `https://agents.example.com`: what it issues itself goes nowhere else. */
  ownAddresses(): readonly string[];
  /** Path of the file with what roles have at other services. */
  roleCredentials: string | undefined;
  region: string;
  clock: Pick<Clock, 'now'>;
}

type Scope = Partial<control.IamCredentialProvider>;

interface Session {
  now: SessionCredentials;
  /** What requests were signed with until it was renewed: a backend may still repeat it. */
  before: SessionCredentials | undefined;
  /** Unix time in milliseconds. */
  until: number;
}

const MOST_SESSIONS = 1_000;

/**
 * Signs requests to backends (SigV4). Requests to this platform are signed with short-lived credentials that it issues; those to another host only with
 * keys that the operator gave the role for that very host. The maker of a target names its host, so nothing else may be signed for it.
 */
export class BackendSigning {
  readonly #deps: BackendSigningDeps;
  readonly #sessions = new Lru<string, Session>(MOST_SESSIONS);

  constructor(deps: BackendSigningDeps) {
    this.#deps = deps;
  }

  /** The path at this platform that an address leads to, such as `/runtimes/…`; undefined for one elsewhere. */
  ownPath(url: string): string | undefined {
    if (!URL.canParse(url)) return undefined;
    const { origin, pathname } = new URL(url);
    for (const own of this.#deps.ownAddresses().map((address) => new URL(address))) {
      const base = own.pathname.replace(/\/$/, '');
      // Behind a proxy the rest of the host may be somebody else's.
      if (own.origin === origin && pathname.startsWith(`${base}/`)) return pathname.slice(base.length);
    }
    return undefined;
  }

  /** Why requests to that address are not signed in the name of a gateway's role; undefined when they are. */
  async refusalOf({ definition: { roleArn } }: Gateway, url: string): Promise<string | undefined> {
    if (this.ownPath(url) !== undefined) return undefined;
    try {
      const keys = await this.#keysOf(roleArn);
      return keys && coversHost(keys, new URL(url)) ? undefined : noKeys(roleArn, url);
    } catch (error) {
      if (error instanceof ToolError) return error.message;
      throw error;
    }
  }

  /** In the name of the gateway's role, for a target that was `given` these memories. Rejects with AccessDeniedException for a role that does not trust the platform. */
  async asRole(gateway: Gateway, scope: Scope = {}, given: readonly string[] = []): Promise<Credential> {
    const { arn, definition } = gateway;
    const { roleArn } = definition;
    const { now: session, before } = this.#session([roleArn, arn, ...given].join(' '), () =>
      gatewaySession(gateway, this.#deps.roles, given),
    );
    // What is wrong with the file is no matter of requests to this platform.
    const [read] = await Promise.allSettled([this.#keysOf(roleArn)]);
    const keys = read.status === 'fulfilled' ? read.value : undefined;
    const identity = ['role', roleArn, arn, given, scope, keys];
    return this.#credential(scope, { identity, all: [session, before, keys] }, (url) => {
      if (this.ownPath(url.href) !== undefined) return session;
      if (read.status === 'rejected') throw read.reason;
      if (keys && coversHost(keys, url)) return keys;
      throw new ToolError(noKeys(roleArn, url.href));
    });
  }

  /** In the name of who calls, at this platform alone. Rejects with AccessDeniedException for one who is gone. */
  asCaller(principal: IamPrincipal, scope: Scope = {}): Credential {
    const { arn, accessKeyId, sandboxId, tags, given } = principal;
    const who = [arn, accessKeyId, sandboxId, tags, given];
    const { now: session, before } = this.#session(JSON.stringify(who), () =>
      this.#deps.roles.issueForwarded(principal),
    );
    const identity = ['caller', who, scope];
    return this.#credential(scope, { identity, all: [session, before] }, (url) => {
      if (this.ownPath(url.href) !== undefined) return session;
      throw new ToolError(`Requests to ${url.host} are not signed in the name of callers: it is not this platform.`);
    });
  }

  #credential(
    { service: given, region = this.#deps.region }: Scope,
    { identity, all }: { identity: readonly unknown[]; all: readonly (SigningCredentials | undefined)[] },
    keysFor: (url: URL) => SigningCredentials,
  ): Credential {
    return {
      ...{ headers: {}, query: [], identity },
      secrets: all.flatMap((keys) => (keys ? [keys.secretAccessKey, keys.sessionToken ?? ''] : [])).filter(Boolean),
      sign: async (request) => {
        const service = given ?? request.service;
        if (service === undefined)
          throw new ToolError('The request is not signed: its document does not say for which service it is.');
        return signRequest(request, keysFor(request.url), { service, region, at: this.#deps.clock.now() });
      },
    };
  }

  /** Kept until half of its time is over: what is signed with it may take a while to arrive, and to be followed by more. */
  #session(key: string, issue: () => SessionCredentials): Session {
    const at = this.#deps.clock.now();
    const known = this.#sessions.get(key);
    if (known && known.until > at) return known;
    const now = issue();
    const before = known && known.now.expiresAt > at ? known.now : undefined;
    const session = { now, before, until: (at + now.expiresAt) / 2 };
    this.#sessions.set(key, session);
    return session;
  }

  #keysOf(roleArn: string): Promise<RoleKeys | undefined> {
    return readRoleKeys(this.#deps.roleCredentials, roleArn);
  }
}

function noKeys(roleArn: string, url: string): string {
  const { host } = new URL(url);
  return `Requests to ${host} are not signed: the role ${roleArn} has no keys for that host. The operator gives it some in the file of the setting gateway.roleCredentials.`;
}
