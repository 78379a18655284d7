import { type control, type data, errors, type Paginator } from '@agentplatform/contract';
import { discoveryUrlOf } from '../../../kernel/auth/index.ts';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Executor } from '../../../kernel/storage/index.ts';
import type { WorkloadIdentities } from './workload-identities.ts';
import { directoryArn, type WorkloadIdentity } from './workload-identity.ts';
import type { WorkloadBearer, WorkloadTokens } from './workload-tokens.ts';
import type { TokenUser } from './workload-user.ts';

export interface WorkloadOperationsDeps {
  identities: WorkloadIdentities;
  tokens: WorkloadTokens;
  /** The user of a JWT that is genuine. */
  userOfToken(token: string, accountId: string): Promise<TokenUser>;
  /** Removes tokens that the workload had in the vault, in the transaction that removes it. */
  forget(of: { accountId: string; workload: string }, tx: Executor): Promise<void>;
  paginator: Paginator;
  region: string;
}

/** What this room serves. */
export const WORKLOAD_OPERATIONS = [
  'CreateWorkloadIdentity',
  'GetWorkloadIdentity',
  'UpdateWorkloadIdentity',
  'ListWorkloadIdentities',
  'DeleteWorkloadIdentity',
  'GetWorkloadAccessToken',
  'GetWorkloadAccessTokenForJWT',
  'GetWorkloadAccessTokenForUserId',
] as const;
export type WorkloadOperation = (typeof WORKLOAD_OPERATIONS)[number];

/** The model's own maximum. */
const PAGE_SIZE = 20;

/** The `identities` operations of the wire API, as far as they are about workloads. */
export function workloadOperations(deps: WorkloadOperationsDeps): HandlersOf<WorkloadOperation> {
  const { identities, tokens, userOfToken, paginator, region } = deps;
  const one = ({ name }: { name: string }, ctx: RequestContext): string => identities.arnOf(ctx.accountId, name);
  const workload = ({ workloadName }: { workloadName: string }, ctx: RequestContext): string =>
    identities.arnOf(ctx.accountId, workloadName);

  /** Agents of this platform get their tokens with requests: who could ask for one would speak for any of their users. */
  const token = async (
    { workloadName }: { workloadName: string },
    { accountId }: RequestContext,
    of: () => Promise<Pick<WorkloadBearer, 'user' | 'subjectToken'>>,
  ): Promise<data.GetWorkloadAccessTokenResponse> => {
    const { name, owner, createdAt } = await identities.get(accountId, workloadName);
    if (owner !== undefined)
      throw errors.validation(
        `The workload identity ${name} is linked to ${owner}, so callers cannot get its tokens.`,
        {
          remedy: 'The agent finds its token in the header WorkloadAccessToken of every request.',
        },
      );
    const { token } = tokens.issue({ accountId, workload: name, madeAt: createdAt, ...(await of()) });
    return { workloadAccessToken: token };
  };

  return {
    CreateWorkloadIdentity: {
      resource: one,
      handle: async (input, ctx) => described(await identities.create(input, ctx.accountId)),
    },
    GetWorkloadIdentity: {
      resource: one,
      handle: async (input, ctx) => view(await identities.get(ctx.accountId, input.name)),
    },
    UpdateWorkloadIdentity: {
      resource: one,
      handle: async (input, ctx) => view(await identities.update(input, ctx.accountId)),
    },
    ListWorkloadIdentities: {
      resource: (_input, { accountId }) => directoryArn({ region, accountId }),
      async handle(input, { accountId }) {
        const scope = { operation: 'ListWorkloadIdentities', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          identities.list(accountId, page),
        );
        return {
          workloadIdentities: items.map(({ name, arn }) => ({ name, workloadIdentityArn: arn })),
          nextToken,
        };
      },
    },
    DeleteWorkloadIdentity: {
      resource: one,
      async handle({ name }, { accountId }) {
        await identities.delete(accountId, name, (tx) => deps.forget({ accountId, workload: name }, tx));
        return {};
      },
    },
    GetWorkloadAccessToken: {
      resource: workload,
      handle: (input, ctx) => token(input, ctx, async () => ({ user: undefined })),
    },
    GetWorkloadAccessTokenForJWT: {
      resource: workload,
      handle: (input, ctx) =>
        token(input, ctx, async () => {
          const user = await userOfToken(input.userToken, ctx.accountId);
          const { userToken } = input;
          return { user, subjectToken: { token: userToken, discoveryUrl: discoveryUrlOf(user.issuer) } };
        }),
    },
    GetWorkloadAccessTokenForUserId: {
      resource: workload,
      conditions: ({ userId }) => ({ 'bedrock-agentcore:userid': userId }),
      handle: (input, ctx) => token(input, ctx, async () => ({ user: { kind: 'id', id: input.userId } })),
    },
  };
}

function described(identity: WorkloadIdentity): control.CreateWorkloadIdentityResponse {
  const { name, arn, allowedResourceOauth2ReturnUrls } = identity;
  return { name, workloadIdentityArn: arn, allowedResourceOauth2ReturnUrls };
}

function view(identity: WorkloadIdentity): control.GetWorkloadIdentityResponse {
  const { createdAt, updatedAt } = identity;
  return { ...described(identity), createdTime: new Date(createdAt), lastUpdatedTime: new Date(updatedAt) };
}
