import { errors } from '@agentplatform/contract';
import type { Clock } from '../../clock.ts';
import type { IamPrincipal } from '../principal.ts';
import type { Authorizer, ServicePrincipal } from './authorizer.ts';
import { assertTags } from './iam-admin.ts';
import type { IamDirectory } from './iam-directory.ts';
import { newId, newSecret, roleArn, roleSessionArn } from './iam-ids.ts';
import type { RandomBytes } from './ports.ts';
import type { SessionTokens } from './session-tokens.ts';

export interface RoleSessionRequest {
  roleArn: string;
  /** 2 to 64 of `A-Za-z0-9_+=,.@-` */
  sessionName: string;
  tags?: Record<string, string>;
  /** Who is behind the session: 2 to 64 of `A-Za-z0-9_+=,.@-`. A session that has one hands it on, and can give no other. */
  sourceIdentity?: string | undefined;
  /** 900 seconds to the role's maximum; 3600 when not given. */
  ttlSeconds?: number;
  externalId?: string;
  /** For whom the platform asks, e.g. the ARN of a runtime: what the role's trust policy finds as `aws:SourceArn`. */
  sourceArn?: string;
  /** The credentials end with this sandbox, and so do those that are assumed with them. */
  sandboxId?: string;
  /** What was given to `sourceArn`. It ends here: credentials that are assumed with these have none of it. */
  given?: readonly string[];
}

export interface RoleCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
  /** The ARN of the role session. */
  arn: string;
  /** `AROA…:SESSION` */
  assumedRoleId: string;
  sourceIdentity?: string | undefined;
}

export interface RoleSessions {
  /** STS `AssumeRole`: for whom the role's trust policy admits. Throws AccessDeniedException, ValidationException. */
  assumeRole(caller: IamPrincipal, request: RoleSessionRequest): RoleCredentials;
  /** What the platform itself hands to an agent: the role must trust `bedrock-agentcore.amazonaws.com`. */
  issueRoleCredentials(request: RoleSessionRequest): RoleCredentials;
  /**
   * Fresh credentials of somebody who was authenticated just now, for what the platform does as him. They say nothing of his own secret, and end
   * after five minutes, with his key or role, or with his sandbox. Throws AccessDeniedException for one who is gone.
   */
  issueForwarded(principal: IamPrincipal): SessionCredentials;
}

/** Short-lived credentials. */
export type SessionCredentials = Pick<
  RoleCredentials,
  'accessKeyId' | 'secretAccessKey' | 'sessionToken' | 'expiresAt'
>;

/** As long as the clock of a signature may be off. */
const FORWARDED_MS = 300_000;

export interface RoleSessionsDeps {
  directory: IamDirectory;
  authorizer: Authorizer;
  tokens: SessionTokens;
  clock: Clock;
  random: RandomBytes;
  accountId: string;
}

/** The service that roles of agents trust. */
export const PLATFORM_SERVICE = 'bedrock-agentcore.amazonaws.com';
const NAME = /^[A-Za-z0-9_+=,.@-]{2,64}$/;
/** Together, in characters; they travel in the token of every request. */
const MAX_TAG_CHARS = 2_048;

export function createRoleSessions(deps: RoleSessionsDeps): RoleSessions {
  const platform: ServicePrincipal = { kind: 'service', accountId: deps.accountId, service: PLATFORM_SERVICE };

  function issue(caller: IamPrincipal | ServicePrincipal, request: RoleSessionRequest): RoleCredentials {
    const { sessionName, ttlSeconds = 3_600, tags = {} } = request;
    assertName(sessionName, 'roleSessionName');
    assertTags(tags);
    const sourceIdentity = sourceIdentityOf(caller, request);
    const role = [...deps.directory.state.roles.values()].find((one) => one.arn === request.roleArn);
    const sandboxId = caller.kind === 'iam' ? caller.sandboxId : request.sandboxId;
    const given = caller.kind === 'service' ? request.given : undefined;
    const context: Record<string, string | string[]> = {
      'sts:RoleSessionName': sessionName,
      ...(request.externalId === undefined ? {} : { 'sts:ExternalId': request.externalId }),
      ...(sourceIdentity === undefined ? {} : { 'sts:SourceIdentity': sourceIdentity }),
      ...(caller.kind === 'service' && request.sourceArn !== undefined
        ? { 'aws:SourceArn': request.sourceArn, 'aws:SourceAccount': deps.accountId }
        : {}),
      ...Object.fromEntries(Object.entries(tags).map(([key, value]) => [`aws:RequestTag/${key}`, value])),
      'aws:TagKeys': Object.keys(tags),
    };
    const needed = ['sts:AssumeRole'];
    if (Object.keys(tags).length > 0) needed.push('sts:TagSession');
    if (sourceIdentity !== undefined) needed.push('sts:SetSourceIdentity');
    for (const action of needed) {
      // A role that does not exist is denied like one that does not trust, so names cannot be probed.
      const resource = role?.arn ?? request.roleArn.slice(0, 200);
      const ask = { principal: caller, action, resource, context };
      if (!role || !deps.authorizer.authorizeTrust({ ...ask, resourcePolicies: [role.trustPolicy] }).allowed) {
        const who = caller.kind === 'iam' ? caller.arn : caller.service;
        throw errors.accessDenied(`User: ${who} is not authorized to perform: ${action} on resource: ${resource}`, {
          remedy: "The role's trust policy must allow it.",
        });
      }
    }
    if (!role) throw errors.internal('A role vanished while it was assumed.');
    // AWS limits a role assumed by a role ("chaining") to an hour.
    const chained = caller.kind === 'iam' && caller.arn.includes(':assumed-role/');
    const longest = chained ? 3_600 : role.maxSessionSeconds;
    if (!Number.isInteger(ttlSeconds) || ttlSeconds < 900 || ttlSeconds > longest) {
      throw errors.invalidField('durationSeconds', `must be 900 to ${longest} for this role`);
    }
    const all = { ...role.tags, ...tags };
    if (Object.entries(all).reduce((sum, [k, v]) => sum + k.length + v.length, 0) > MAX_TAG_CHARS) {
      throw errors.invalidField('tags', `must be at most ${MAX_TAG_CHARS} characters together`);
    }
    const issuedAt = deps.clock.now();
    const secret = { accessKeyId: newId('ASIA', deps.random), secretAccessKey: newSecret(deps.random) };
    const expiresAt = issuedAt + ttlSeconds * 1000;
    const { roleName, roleId } = role;
    const sessionToken = deps.tokens.seal({
      ...secret,
      roleName,
      roleId,
      sessionName,
      tags: all,
      sourceIdentity,
      issuedAt,
      expiresAt,
      sandboxId,
      given,
    });
    const arn = roleSessionArn(deps.accountId, roleName, sessionName);
    return { ...secret, sessionToken, expiresAt, arn, assumedRoleId: `${roleId}:${sessionName}`, sourceIdentity };
  }

  function issueForwarded({
    arn,
    accessKeyId: ofKey,
    tags,
    sourceIdentity,
    sandboxId,
    given,
  }: IamPrincipal): SessionCredentials {
    const issuedAt = deps.clock.now();
    const expiresAt = issuedAt + FORWARDED_MS;
    const secret = { accessKeyId: newId('ASIA', deps.random), secretAccessKey: newSecret(deps.random) };
    const [, roleName, sessionName = ''] = /:assumed-role\/([^/]+)\/(.+)$/.exec(arn) ?? [];
    const { roles, accessKeys } = deps.directory.state;
    const role = roleName === undefined ? undefined : roles.get(roleName);
    if (roleName === undefined ? !accessKeys.has(ofKey) : !role)
      throw errors.accessDenied(`User: ${arn} is no more.`, { remedy: 'Sign with credentials that still count.' });
    const session = { ...secret, issuedAt, expiresAt };
    const sessionToken = deps.tokens.seal(
      role
        ? {
            ...session,
            roleName: role.roleName,
            roleId: role.roleId,
            sessionName,
            tags,
            sourceIdentity,
            sandboxId,
            given,
          }
        : { ...session, ofKey },
    );
    return { ...secret, sessionToken, expiresAt };
  }

  return {
    assumeRole: issue,
    issueForwarded,
    issueRoleCredentials: (request) => issue(platform, request),
  };
}

function assertName(name: string, field: string): void {
  if (!NAME.test(name)) throw errors.invalidField(field, 'must be 2 to 64 of the characters A-Z a-z 0-9 _ + = , . @ -');
}

/** That of the caller's session, where it has one. Throws ValidationException, and AccessDeniedException for another one. */
function sourceIdentityOf(
  caller: IamPrincipal | ServicePrincipal,
  { sourceIdentity }: RoleSessionRequest,
): string | undefined {
  if (sourceIdentity !== undefined) assertName(sourceIdentity, 'sourceIdentity');
  const own = caller.kind === 'iam' ? caller.sourceIdentity : undefined;
  if (own !== undefined && sourceIdentity !== undefined && sourceIdentity !== own)
    throw errors.accessDenied('The source identity of a session cannot be changed.', {
      remedy: `Leave sourceIdentity out, or give ${own}.`,
    });
  return own ?? sourceIdentity;
}

/** Trusted by the platform and, for those whom their own policies allow it, by the principals of the account. */
export function defaultTrustPolicy(accountId: string): string {
  const statement = (Principal: object): object => ({
    Effect: 'Allow',
    Principal,
    Action: ['sts:AssumeRole', 'sts:TagSession', 'sts:SetSourceIdentity'],
  });
  return JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      statement({ Service: PLATFORM_SERVICE }),
      statement({ AWS: roleArn(accountId, '').replace('role/', 'root') }),
    ],
  });
}
