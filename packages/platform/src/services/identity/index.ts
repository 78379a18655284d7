import type { Paginator } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database, Executor } from '../../kernel/storage/index.ts';
import { WorkloadIdentities, type WorkloadOwner } from './workloads/workload-identities.ts';
import { WORKLOAD_IDENTITY_KIND, workloadNameOf } from './workloads/workload-identity.ts';
import { type WorkloadOperation, workloadOperations } from './workloads/workload-operations.ts';
import { type WorkloadBearer, type WorkloadToken, WorkloadTokens } from './workloads/workload-tokens.ts';
import { type UserTokenDeps, userOfToken, type WorkloadUser } from './workloads/workload-user.ts';

export { identityMigrations } from './tables.ts';
export type { WorkloadUser };

export interface IdentityServiceDeps extends UserTokenDeps {
  database: Database;
  /** Removes the secrets of a workload that is being removed. */
  forgetSecrets(owner: WorkloadOwner, tx: Executor): Promise<void>;
  paginator: Paginator;
  clock: Clock;
  region: string;
  /** 32 bytes that workload access tokens are sealed with. */
  tokenKey: Uint8Array;
  /** How long such a token counts. */
  tokenLifeMs: number;
}

/** What services whose resources are workloads use of it. */
export interface IdentityPort {
  /** ARN of the identity of that name. */
  arnOf(accountId: string, name: string): string;
  /** Makes a resource's identity in the transaction that makes the resource; it goes with the resource's children. */
  link(owner: WorkloadOwner, tx: Executor): Promise<void>;
  /** Removes what the resource's children do not take with them, in the transaction that removes the resource and before these. */
  unlink(owner: WorkloadOwner, tx: Executor): Promise<void>;
  /** Where users of that workload may be sent back to: the first such address that a header can carry. */
  callbackUrl(accountId: string, name: string): Promise<string | undefined>;
  /** What the change feed calls a change of an identity. */
  topic: string;
  /** The name of an identity by its ARN. */
  nameOf(arn: string): string;
  /** Touches no database. Throws ValidationException when the user's names are too long. */
  issueToken(bearer: WorkloadBearer): WorkloadToken;
}

/** What this service serves. */
export type IdentityOperation = WorkloadOperation;

/** Identity: agents as callers of their own, and tokens that say which of them works for whom (spec: Identity). */
export function createIdentityService(deps: IdentityServiceDeps): Service<IdentityOperation, IdentityPort> {
  const { tokenKey: key, tokenLifeMs: lifeMs, clock } = deps;
  const identities = new WorkloadIdentities(deps);
  const find = identities.find.bind(identities);
  const tokens = new WorkloadTokens({ key, lifeMs, clock, find });
  return {
    operations: workloadOperations({
      ...deps,
      identities,
      tokens,
      userOfToken: (token, accountId) => userOfToken(token, accountId, deps),
    }),
    port: {
      arnOf: (accountId, name) => identities.arnOf(accountId, name),
      link: (owner, tx) => identities.link(owner, tx),
      unlink: (owner, tx) => deps.forgetSecrets(owner, tx),
      callbackUrl: (accountId, name) => identities.callbackUrl(accountId, name),
      topic: WORKLOAD_IDENTITY_KIND,
      nameOf: workloadNameOf,
      issueToken: (bearer) => tokens.issue(bearer),
    },
    start: async () => undefined,
    stop: async () => undefined,
  };
}
