import type { IncomingHttpHeaders } from 'node:http';
import { errors, type Paginator } from '@agentplatform/contract';
import type { OAuthPrincipal } from '../../../kernel/auth/index.ts';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { HarnessInvocations } from '../invoke-harness.ts';
import { DEFAULT_ENDPOINT, endpointArn, harnessArn, type VersionOfHarness } from './harness.ts';
import type { HarnessEndpoints } from './harness-endpoints.ts';
import type { HarnessStore } from './harness-store.ts';
import { type Harnesses, newestOf } from './harnesses.ts';
import { endpointView, harnessSummary, harnessView, runtimeArnOf, versionSummary } from './views.ts';

export interface HarnessOperationsDeps {
  harnesses: Harnesses;
  endpoints: HarnessEndpoints;
  store: Pick<HarnessStore, 'family'>;
  invocations: Pick<HarnessInvocations, 'invoke'>;
  paginator: Paginator;
  region: string;
  /** Accepts a bearer token by the harness's customJWTAuthorizer; rejects with 401 or 403. */
  verifyToken(version: VersionOfHarness, token: string, headers: IncomingHttpHeaders): Promise<OAuthPrincipal>;
  /** Throws ThrottlingException when the endpoint gets more calls than its quota. */
  takeInvocation(endpointArn: string): void;
}

/** What this service serves. */
export const HARNESS_OPERATIONS = [
  'CreateHarness',
  'GetHarness',
  'UpdateHarness',
  'DeleteHarness',
  'ListHarnesses',
  'ListHarnessVersions',
  'CreateHarnessEndpoint',
  'GetHarnessEndpoint',
  'UpdateHarnessEndpoint',
  'DeleteHarnessEndpoint',
  'ListHarnessEndpoints',
  'InvokeHarness',
] as const;
export type HarnessOperation = (typeof HARNESS_OPERATIONS)[number];

const PAGE_SIZE = 100;

/** The `harnesses` operations of the wire API. */
export function harnessOperations(deps: HarnessOperationsDeps): HandlersOf<HarnessOperation> {
  const { harnesses, endpoints, store, invocations, paginator } = deps;
  const arnOf = (id: string, { accountId }: RequestContext): string =>
    harnessArn({ region: deps.region, accountId }, id);
  const any = (_input: unknown, ctx: RequestContext): string => arnOf('*', ctx);
  const one = ({ harnessId }: { harnessId: string }, ctx: RequestContext): string => arnOf(harnessId, ctx);
  const oneEndpoint = (input: { harnessId: string; endpointName: string }, ctx: RequestContext): string =>
    endpointArn(one(input, ctx), input.endpointName);
  const reached = async (named: { harnessArn: string; qualifier?: string }): Promise<VersionOfHarness> =>
    reachedVersion(named, store);

  return {
    CreateHarness: {
      resource: any,
      handle: async (input, ctx) => ({ harness: harnessView(await harnesses.create(input, ctx)) }),
    },
    GetHarness: {
      resource: one,
      handle: async ({ harnessId }, { accountId }) => ({
        harness: harnessView(await harnesses.get(harnessId, accountId)),
      }),
    },
    UpdateHarness: {
      resource: one,
      handle: async (input, ctx) => ({ harness: harnessView(await harnesses.update(input, ctx)) }),
    },
    DeleteHarness: {
      resource: one,
      handle: async ({ harnessId, deleteManagedMemory = false }, { accountId }) => ({
        harness: harnessView(await harnesses.delete(harnessId, accountId, deleteManagedMemory)),
      }),
    },
    ListHarnesses: {
      resource: any,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListHarnesses', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          harnesses.list(accountId, page),
        );
        return { harnesses: items.map(harnessSummary), nextToken };
      },
    },
    ListHarnessVersions: {
      resource: one,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListHarnessVersions', accountId, filter: input.harnessId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          harnesses.versions(input.harnessId, accountId, page),
        );
        return { harnessVersions: items.map(versionSummary), nextToken };
      },
    },
    CreateHarnessEndpoint: {
      resource: one,
      async handle(input, { accountId }) {
        const { harness, endpoint } = await endpoints.create(input, accountId);
        return { endpoint: endpointView(harness, endpoint) };
      },
    },
    GetHarnessEndpoint: {
      resource: oneEndpoint,
      async handle({ harnessId, endpointName }, { accountId }) {
        const { harness, endpoint } = await endpoints.get(harnessId, endpointName, accountId);
        return { endpoint: endpointView(harness, endpoint) };
      },
    },
    UpdateHarnessEndpoint: {
      resource: oneEndpoint,
      async handle(input, { accountId }) {
        const { harness, endpoint } = await endpoints.update(input, accountId);
        return { endpoint: endpointView(harness, endpoint) };
      },
    },
    DeleteHarnessEndpoint: {
      resource: oneEndpoint,
      async handle({ harnessId, endpointName }, { accountId }) {
        const { harness, endpoint } = await endpoints.delete(harnessId, endpointName, accountId);
        return { endpoint: endpointView(harness, endpoint) };
      },
    },
    ListHarnessEndpoints: {
      resource: one,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListHarnessEndpoints', accountId, filter: input.harnessId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          endpoints.list(input.harnessId, accountId, page),
        );
        return { endpoints: items.map(({ harness, endpoint }) => endpointView(harness, endpoint)), nextToken };
      },
    },
    InvokeHarness: {
      // Hierarchical, as runtimes are: the harness and the endpoint by which it is reached.
      resource: ({ harnessArn: arn, qualifier = DEFAULT_ENDPOINT }) => [arn, endpointArn(arn, qualifier)],
      audited: runtimeArnOf,
      bearer: async (input, token, headers) => deps.verifyToken(await reached(input), token, headers),
      async handle(input, ctx) {
        const version = await reached(input);
        requireToken(version, ctx);
        deps.takeInvocation(endpointArn(input.harnessArn, input.qualifier ?? DEFAULT_ENDPOINT));
        return { stream: await invocations.invoke(version, input, ctx) };
      },
    },
  };
}

/** The version that an invocation reaches. Rejects with ResourceNotFoundException, and with ValidationException where none is READY yet. */
async function reachedVersion(
  { harnessArn: arn, qualifier = DEFAULT_ENDPOINT }: { harnessArn: string; qualifier?: string },
  store: Pick<HarnessStore, 'family'>,
): Promise<VersionOfHarness> {
  const family = await store.family(arn);
  if (!family || family.harness.deleting)
    throw errors.resourceNotFound(`There is no harness ${arn}.`, {
      remedy: 'Check id, account and region; ListHarnesses lists those that exist.',
    });
  const { harness, versions, endpoints } = family;
  const endpoint = endpoints.find(({ name }) => name === qualifier);
  if (!endpoint)
    throw errors.resourceNotFound(`${harness.id} has no endpoint ${qualifier}.`, {
      remedy: 'ListHarnessEndpoints lists those that exist.',
    });
  const version = versions.find((one) => one.version === endpoint.liveVersion);
  if (version) return { ...version, harness };
  const { status, failureReason } = newestOf(family);
  throw errors.validation(`The harness ${harness.id} is ${status}, and can be invoked once it is READY.`, {
    remedy: failureReason ?? 'Wait until GetHarness says READY.',
  });
}

/** A harness with an authorizer takes its tokens, and no signature instead. */
function requireToken({ definition, harness }: VersionOfHarness, ctx: RequestContext): void {
  if (!definition.authorizerConfiguration || ctx.principal.kind === 'oauth') return;
  throw errors.accessDenied(
    `Authorization method mismatch: the harness ${harness.id} accepts bearer tokens, but the request is signed.`,
    { remedy: 'Send a token of its identity provider, or remove its authorizerConfiguration.' },
  );
}
