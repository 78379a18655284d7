import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import { browserIdOf } from '../browser.ts';
import { BrowserHost } from '../browser-host.ts';
import type { BrowserSessions } from '../browser-sessions.ts';
import type { Browsers } from '../browsers.ts';
import { callerOf } from '../callers.ts';
import { CdpClient } from '../cdp-client.ts';
import { readState } from './profile-state.ts';
import { type Profile, type Profiles, profileArn } from './profiles.ts';

export interface ProfileOperationsDeps {
  profiles: Profiles;
  browsers: Pick<Browsers, 'get'>;
  sessions: Pick<BrowserSessions, 'lease'>;
  paginator: Paginator;
  clock: { now(): number };
  region: string;
}

export const PROFILE_OPERATIONS = [
  'CreateBrowserProfile',
  'GetBrowserProfile',
  'ListBrowserProfiles',
  'DeleteBrowserProfile',
  'SaveBrowserSessionProfile',
] as const;
export type ProfileOperation = (typeof PROFILE_OPERATIONS)[number];

const PAGE_SIZE = 100;
const PORT = 8080;
/** How long it may take to read what a browser keeps. */
const SAVE_MS = 60_000;

/** The `browser-profiles` operations of the wire API. */
export function profileOperations(deps: ProfileOperationsDeps): HandlersOf<ProfileOperation> {
  const { profiles, browsers, sessions, paginator, clock, region } = deps;
  const any = (_input: unknown, { accountId }: RequestContext): string => profileArn('*', region, accountId);
  const one = ({ profileId }: { profileId: string }, { accountId }: RequestContext): string =>
    profileArn(profileId, region, accountId);

  return {
    CreateBrowserProfile: {
      resource: any,
      async handle(input, ctx) {
        const { id, arn, createdAt } = await profiles.create(input, ctx);
        return { profileId: id, profileArn: arn, createdAt: new Date(createdAt), status: 'READY' };
      },
    },
    GetBrowserProfile: {
      resource: one,
      handle: async ({ profileId }, { accountId }) => summary(await profiles.get(profileId, accountId)),
    },
    ListBrowserProfiles: {
      resource: any,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListBrowserProfiles', accountId, filter: input.name ?? '' };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          profiles.list(accountId, { ...page, name: input.name }),
        );
        return { profileSummaries: items.map(summary), nextToken };
      },
    },
    DeleteBrowserProfile: {
      resource: one,
      async handle({ profileId }, { accountId }) {
        const { id, arn, savedAt } = await profiles.delete(profileId, accountId);
        return {
          ...{ profileId: id, profileArn: arn, status: 'DELETING', lastUpdatedAt: new Date(clock.now()) },
          ...(savedAt === undefined ? {} : { lastSavedAt: new Date(savedAt) }),
        };
      },
    },
    SaveBrowserSessionProfile: {
      resource: ({ profileIdentifier }, { accountId }) => profileArn(profileIdentifier, region, accountId),
      async handle({ profileIdentifier, browserIdentifier, sessionId }, ctx) {
        const profile = await profiles.get(profileIdentifier, ctx.accountId);
        const browser = await browsers.get(browserIdOf(browserIdentifier), ctx.accountId);
        const { lease } = await sessions.lease(browser, callerOf(browser, ctx), sessionId, ctx.signal);
        const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(SAVE_MS)]);
        let cdp: CdpClient | undefined;
        try {
          cdp = await CdpClient.open(lease.sandbox.address(PORT), signal);
          const state = await readState(cdp, await new BrowserHost(lease.connection).origins(signal));
          const { updatedAt } = await profiles.save(profile, state, { browserId: browser.id, sessionId });
          return { profileIdentifier, browserIdentifier: browser.id, sessionId, lastUpdatedAt: new Date(updatedAt) };
        } finally {
          cdp?.close();
          lease.release();
        }
      },
    },
  };
}

function summary({ id, arn, name, description, ...of }: Profile): control.BrowserProfileSummary {
  return {
    profileId: id,
    profileArn: arn,
    name,
    description,
    status: 'READY',
    createdAt: new Date(of.createdAt),
    lastUpdatedAt: new Date(of.updatedAt),
    lastSavedAt: of.savedAt === undefined ? undefined : new Date(of.savedAt),
    lastSavedBrowserSessionId: of.savedSessionId,
    lastSavedBrowserId: of.savedBrowserId,
  };
}
