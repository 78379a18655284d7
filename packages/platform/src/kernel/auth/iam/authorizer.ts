import type { Clock } from '../../clock.ts';
import { Lru } from '../../lru.ts';
import { assumedRoleArn } from '../owner-of.ts';
import type { Principal } from '../principal.ts';
import { AllowedActions, type AllResourcePolicies } from './allowed-actions.ts';
import type { IamDirectory } from './iam-directory.ts';
import { roleArn, rootArn } from './iam-ids.ts';
import type { ContextLookup } from './iam-policy-condition.ts';
import { type Policy, type PolicyKind, parsePolicy } from './iam-policy-document.ts';
import { type AccessRequest, evaluate, type Verdict } from './iam-policy-evaluator.ts';
import type { PrincipalIdentity } from './iam-policy-principal.ts';

export interface AuthorizationRequest {
  principal: Principal | ServicePrincipal;
  /** `bedrock-agentcore:InvokeAgentRuntime` */
  action: string;
  /** ARN, or an ARN pattern or `*` for actions on no single resource. */
  resource: string;
  /** Condition keys of the request, e.g. `bedrock-agentcore:actorId`, `aws:SourceIp`; the case of keys does not matter. */
  context?: Record<string, string | readonly string[]>;
  /** The policy documents attached to the resource and to what it belongs to. */
  resourcePolicies?: readonly string[];
}

/** A part of the platform that acts by itself, e.g. when it assumes an agent's execution role. */
export interface ServicePrincipal {
  kind: 'service';
  accountId: string;
  /** `bedrock-agentcore.amazonaws.com` */
  service: string;
}

export interface Authorization {
  allowed: boolean;
  /** A sentence for the log and for the error; it names the kind of policy and the statement, not their content. */
  reason: string;
}

export interface Authorizer {
  /** Never throws for a stored policy: one that cannot be read any more denies. */
  authorize(request: AuthorizationRequest): Authorization;
  /**
   * Whether any policy of the caller allows the action on anything at all, or one among `resourcePolicies` to anybody: false is a
   * refusal whatever the request holds, true is no answer yet.
   */
  allowsSomewhere(
    request: Pick<AuthorizationRequest, 'principal' | 'action'> & { resourcePolicies: AllResourcePolicies },
  ): boolean;
  /** The same question put to a role's trust policy; `action` is `sts:AssumeRole`, `resource` the role's ARN. */
  authorizeTrust(request: AuthorizationRequest & { resourcePolicies: readonly [string] }): Authorization;
}

export interface AuthorizerDeps {
  directory: IamDirectory;
  clock: Clock;
  region: string;
}

interface Actor {
  identity: PrincipalIdentity;
  root: boolean;
  policies: readonly Policy[];
}

/** Decides what an authenticated principal may do, from its own policies and those of the resource, all from memory. */
export function createAuthorizer(deps: AuthorizerDeps): Authorizer {
  const documents = new Lru<string, Policy>(2_048);
  const lent = new AllowedActions();
  const actors = new Lru<string, { revision: number; actor: Actor }>(10_000);

  function compiled(source: string, kind: PolicyKind): Policy {
    const id = `${kind} ${source}`;
    const known = documents.get(id);
    if (known) return known;
    const policy = parsePolicy(source, kind);
    documents.set(id, policy);
    return policy;
  }

  function actorOf(principal: AuthorizationRequest['principal']): Actor {
    if (principal.kind !== 'iam') {
      const service = principal.kind === 'service' ? principal.service : undefined;
      const identity = { arn: undefined, accountId: principal.accountId, roleArn: undefined, service };
      return { identity, root: false, policies: [] };
    }
    const { state } = deps.directory;
    const known = actors.get(principal.arn);
    if (known && known.revision === state.revision) return known.actor;
    const { accountId, arn } = principal;
    const [, kind = '', name = ''] = /:(user|assumed-role)\/([^/]+)/.exec(arn) ?? [];
    const owner = kind === 'user' ? state.users.get(name) : state.roles.get(name);
    const actor: Actor = {
      identity: {
        arn,
        accountId,
        roleArn: kind === 'assumed-role' ? roleArn(accountId, name) : undefined,
        service: undefined,
      },
      root: arn === rootArn(accountId),
      policies: Object.values(owner?.policies ?? {}).map((source) => compiled(source, 'identity')),
    };
    actors.set(arn, { revision: state.revision, actor });
    return actor;
  }

  function ask(request: AuthorizationRequest, kind: 'resource' | 'trust'): Authorization {
    const actor = actorOf(request.principal);
    const question: AccessRequest = {
      principal: actor.identity,
      action: request.action,
      resource: request.resource,
      context: lookup(request, deps),
    };
    const attached = (request.resourcePolicies ?? []).map((source) => compiled(source, kind));
    const resource = evaluate(attached, question);
    if (resource.effect === 'Deny')
      return answer(false, request, `a statement of the ${kind} policy denies it`, resource);
    const identity: Verdict = actor.root ? { effect: 'None' } : evaluate(actor.policies, question);
    if (identity.effect === 'Deny') return answer(false, request, 'an identity policy denies it', identity);
    const byIdentity = actor.root || identity.effect === 'Allow';
    if (kind === 'trust') {
      const byTrust = resource.effect === 'Allow' && (resource.match === 'direct' || byIdentity);
      return answer(
        byTrust,
        request,
        byTrust ? 'the trust policy allows it' : 'the trust policy does not allow it',
        resource,
      );
    }
    if (byIdentity)
      return answer(true, request, actor.root ? 'the root of the account' : 'an identity policy allows it', identity);
    if (resource.effect === 'Allow' && resource.match === 'direct') {
      return answer(true, request, 'the resource policy allows it', resource);
    }
    const { principal } = request;
    if (
      (principal.kind === 'oauth' || principal.kind === 'anonymous') &&
      belongs(request.resource, principal.acceptedBy)
    )
      return answer(true, request, ACCEPTED[principal.kind], resource);
    return answer(false, request, 'no policy allows it', resource);
  }

  const closed =
    (kind: 'resource' | 'trust') =>
    (request: AuthorizationRequest): Authorization => {
      try {
        return ask(request, kind);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        return { allowed: false, reason: `${describe(request)}: a stored policy cannot be read (${why})` };
      }
    };
  const allowsSomewhere: Authorizer['allowsSomewhere'] = ({ principal, action, resourcePolicies }) => {
    if (principal.kind !== 'iam') return true;
    try {
      const actor = actorOf(principal);
      const allows = ({ statements }: Policy): boolean =>
        statements.some(
          (one) =>
            one.effect === 'Allow' && one.matchesAction(action) && one.matchesPrincipal(actor.identity) !== 'none',
        );
      if (actor.root || actor.policies.some(allows)) return true;
      return lent.has(action, resourcePolicies);
    } catch {
      // A policy that cannot be read is told of when it is asked for the resource.
      return true;
    }
  };
  return { authorize: closed('resource'), authorizeTrust: closed('trust'), allowsSomewhere };
}

/** Why the resource itself lets somebody in whom no policy names. */
const ACCEPTED = {
  oauth: "the resource's own authorizer accepted the token",
  anonymous: 'the resource is open to everybody',
};

/** Whether the resource is one that was given to whom the credentials were issued for, or below it. */
function isGiven({ principal, resource }: AuthorizationRequest): boolean {
  return principal.kind === 'iam' && (principal.given ?? []).some((arn) => belongs(resource, arn));
}

/** Whether the resource is `owner`, or below it as an endpoint is below its runtime. */
function belongs(resource: string, owner: string | undefined): boolean {
  return owner !== undefined && (resource === owner || resource.startsWith(`${owner}/`));
}

function answer(allowed: boolean, request: AuthorizationRequest, why: string, verdict: Verdict): Authorization {
  const sid = verdict.effect === 'None' || !verdict.statement.sid ? '' : ` (statement ${verdict.statement.sid})`;
  return { allowed, reason: `${describe(request)}: ${why}${sid}` };
}

function describe({ principal, action, resource }: AuthorizationRequest): string {
  const who =
    principal.kind === 'iam'
      ? principal.arn
      : principal.kind === 'oauth'
        ? `OAuth subject ${principal.subject}`
        : principal.kind === 'anonymous'
          ? 'somebody without credentials'
          : principal.service;
  return `${who} asks for ${action} on ${resource}`;
}

/** Condition keys by lower-case name: those given, then those that follow from the principal and the time. */
function lookup(request: AuthorizationRequest, deps: AuthorizerDeps): ContextLookup {
  let given: Map<string, readonly string[]> | undefined;
  return (key) => {
    if (key === 'agentplatform:resourceisgiven') return [String(isGiven(request))];
    const own = principalKey(request.principal, key);
    // What follows from the principal itself cannot be overruled by a request.
    if (own !== undefined || key.startsWith('aws:principal') || OF_PRINCIPAL.has(key)) return own;
    given ??= new Map(
      Object.entries(request.context ?? {}).map(([name, value]) => [
        name.toLowerCase(),
        typeof value === 'string' ? [value] : value,
      ]),
    );
    const found = given.get(key);
    if (found) return found;
    if (key === 'aws:currenttime') return [new Date(deps.clock.now()).toISOString()];
    if (key === 'aws:epochtime') return [String(Math.floor(deps.clock.now() / 1000))];
    if (key === 'aws:requestedregion') return [deps.region];
    return undefined;
  };
}

/** Beside those that are called so. */
const OF_PRINCIPAL: ReadonlySet<string> = new Set(['aws:username', 'aws:sourceidentity']);

function principalKey(principal: AuthorizationRequest['principal'], key: string): readonly string[] | undefined {
  if (key === 'aws:principalaccount') return [principal.accountId];
  if (principal.kind === 'service') {
    return key === 'aws:principalservicename'
      ? [principal.service]
      : key === 'aws:principalisawsservice'
        ? ['true']
        : undefined;
  }
  if (key === 'aws:principalisawsservice') return ['false'];
  if (principal.kind !== 'iam') return undefined;
  if (key === 'aws:principalarn') return [assumedRoleArn(principal.arn)];
  if (key === 'aws:principaltype')
    return [
      principal.arn.includes(':assumed-role/') ? 'AssumedRole' : principal.arn.endsWith(':root') ? 'Account' : 'User',
    ];
  if (key === 'aws:username') {
    const name = /:user\/(.+)$/.exec(principal.arn)?.[1];
    return name === undefined ? undefined : [name];
  }
  if (key === 'aws:sourceidentity')
    return principal.sourceIdentity === undefined ? undefined : [principal.sourceIdentity];
  if (!key.startsWith('aws:principaltag/')) return undefined;
  const wanted = key.slice('aws:principaltag/'.length);
  const found = Object.entries(principal.tags).find(([name]) => name.toLowerCase() === wanted);
  return found && [found[1]];
}
