import { type control, type data, errors, type Paginator } from '@agentplatform/contract';
import { ownerOf } from '../../kernel/auth/index.ts';
import type { HandlersOf, RequestContext } from '../../kernel/service.ts';
import { invokeAction } from './actions.ts';
import { type Browser, browserArn, browserIdOf } from './browser.ts';
import { BrowserHost, USUAL_VIEW_PORT } from './browser-host.ts';
import type { BrowserSessions } from './browser-sessions.ts';
import type { Browsers } from './browsers.ts';
import { callerOf } from './callers.ts';
import { CdpClient } from './cdp-client.ts';
import { profileArn } from './profiles/profiles.ts';
import { recordingUri } from './recording/recordings.ts';
import type { SessionRecord } from './session-records.ts';
import { streamAddress } from './stream-path.ts';
import { refuseUnserved } from './unserved.ts';

export interface BrowserOperationsDeps {
  browsers: Browsers;
  sessions: BrowserSessions;
  /** Whether programs may drive a session was changed: tells all who are connected to it. */
  automationChanged(sessionId: string, status: data.AutomationStreamStatus): void;
  paginator: Paginator;
  clock: { now(): number };
  region: string;
}

/** What this service serves. */
export const BROWSER_OPERATIONS = [
  'CreateBrowser',
  'GetBrowser',
  'ListBrowsers',
  'DeleteBrowser',
  'StartBrowserSession',
  'GetBrowserSession',
  'ListBrowserSessions',
  'StopBrowserSession',
  'UpdateBrowserStream',
  'InvokeBrowser',
] as const;
export type BrowserOperation = (typeof BROWSER_OPERATIONS)[number];

const PAGE_SIZE = 100;
/** Names the built-in browser's place in a list: before all others. */
const AFTER_BUILT_IN = 'built-in';
/** How long one action may take. */
const ACTION_MS = 30_000;
const PORT = 8080;

/** The `browsers` operations of the wire API. */
export function browserOperations(deps: BrowserOperationsDeps): HandlersOf<BrowserOperation> {
  const { browsers, sessions, automationChanged, paginator, clock, region } = deps;
  const arnOf = (id: string, ctx: RequestContext): string => browserArn(id, region, ctx.accountId);
  const any = (_input: unknown, ctx: RequestContext): string => arnOf('*', ctx);
  const one = (input: { browserId: string }, ctx: RequestContext): string => arnOf(input.browserId, ctx);
  const named = (input: { browserIdentifier: string }, ctx: RequestContext): string =>
    arnOf(browserIdOf(input.browserIdentifier), ctx);
  const find = (input: { browserIdentifier: string }, ctx: RequestContext): Promise<Browser> =>
    browsers.get(browserIdOf(input.browserIdentifier), ctx.accountId);

  return {
    CreateBrowser: {
      resource: any,
      async handle(input, ctx) {
        const { id, arn, createdAt } = await browsers.create(input, ctx);
        return { browserId: id, browserArn: arn, createdAt: new Date(createdAt), status: 'READY' };
      },
    },
    GetBrowser: {
      resource: one,
      handle: async (input, ctx) => view(await browsers.get(input.browserId, ctx.accountId)),
    },
    ListBrowsers: {
      resource: any,
      async handle(input, ctx) {
        const { accountId } = ctx;
        const scope = { operation: 'ListBrowsers', accountId, filter: input.type ?? '' };
        const page = { ...input, size: PAGE_SIZE };
        const { items, nextToken } = await paginator.page(scope, page, async ({ limit, after }) => {
          const builtIn = input.type === 'CUSTOM' || after !== undefined ? [] : [browsers.builtIn(accountId)];
          if (input.type === 'SYSTEM') return { items: builtIn };
          const room = limit - builtIn.length;
          if (room === 0) return { items: builtIn, next: AFTER_BUILT_IN };
          const place = after === AFTER_BUILT_IN ? undefined : after;
          const own = await browsers.list(accountId, { limit: room, after: place });
          return { items: [...builtIn, ...own.items], next: own.next };
        });
        return { browserSummaries: items.map(summary), nextToken };
      },
    },
    DeleteBrowser: {
      resource: one,
      async handle({ browserId }, ctx) {
        await browsers.delete(browserId, ctx.accountId);
        return { browserId, status: 'DELETING', lastUpdatedAt: new Date(clock.now()) };
      },
    },
    StartBrowserSession: {
      resource: named,
      async handle(input, ctx) {
        refuseUnserved(input);
        const browser = await find(input, ctx);
        const { name, sessionTimeoutSeconds, viewPort, profileConfiguration } = input;
        const profileIdentifier = profileConfiguration?.profileIdentifier;
        if (profileIdentifier !== undefined)
          await ctx.require(
            'bedrock-agentcore:StartBrowserSession',
            profileArn(profileIdentifier, region, ctx.accountId),
          );
        const wish = {
          ...(name === undefined ? {} : { name }),
          ...(sessionTimeoutSeconds === undefined ? {} : { timeoutSeconds: sessionTimeoutSeconds }),
          ...(profileIdentifier === undefined ? {} : { profileIdentifier }),
          viewPort: viewPort ?? USUAL_VIEW_PORT,
        };
        const owner = ownerOf(ctx.principal);
        const record = await sessions.start(browser, wish, { accountId: ctx.accountId, owner }, ctx);
        return {
          browserIdentifier: browser.id,
          sessionId: record.sessionId,
          createdAt: new Date(record.createdAt),
          streams: streamsOf(browser, record, ctx),
        };
      },
    },
    GetBrowserSession: {
      resource: named,
      async handle(input, ctx) {
        const browser = await find(input, ctx);
        const { record, live } = await sessions.get(browser, callerOf(browser, ctx), input.sessionId);
        return {
          ...sessionSummary(browser, record, live),
          sessionTimeoutSeconds: record.asked.timeoutSeconds,
          viewPort: record.asked.viewPort,
          ...profileOf(record),
          ...(browser.recording ? { sessionReplayArtifact: recordingUri(browser.recording, record.sessionId) } : {}),
          streams: streamsOf(browser, record, ctx),
        };
      },
    },
    ListBrowserSessions: {
      resource: named,
      async handle(input, ctx) {
        const browser = await find(input, ctx);
        const filter = `${browser.id} ${input.status ?? ''}`;
        const scope = { operation: 'ListBrowserSessions', accountId: ctx.accountId, filter };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          sessions.list(browser, callerOf(browser, ctx), { ...page, status: input.status }),
        );
        return { items: items.map(({ record, live }) => sessionSummary(browser, record, live)), nextToken };
      },
    },
    StopBrowserSession: {
      resource: named,
      async handle(input, ctx) {
        const browser = await find(input, ctx);
        await sessions.stop(browser, callerOf(browser, ctx), input.sessionId);
        return { browserIdentifier: browser.id, sessionId: input.sessionId, lastUpdatedAt: new Date(clock.now()) };
      },
    },
    UpdateBrowserStream: {
      resource: named,
      async handle(input, ctx) {
        const status = input.streamUpdate.automationStreamUpdate?.streamStatus;
        if (status === undefined)
          throw errors.invalidField('streamUpdate.automationStreamUpdate.streamStatus', 'is required');
        const browser = await find(input, ctx);
        const { lease, record } = await sessions.lease(browser, callerOf(browser, ctx), input.sessionId, ctx.signal);
        try {
          const now = await sessions.setAutomation(record, status);
          automationChanged(record.sessionId, status);
          return {
            browserIdentifier: browser.id,
            sessionId: record.sessionId,
            streams: streamsOf(browser, { ...record, automation: status }, ctx),
            updatedAt: new Date(now),
          };
        } finally {
          lease.release();
        }
      },
    },
    InvokeBrowser: {
      resource: named,
      async handle(input, ctx) {
        const browser = await find(input, ctx);
        const { lease } = await sessions.lease(browser, callerOf(browser, ctx), input.sessionId, ctx.signal);
        const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ACTION_MS)]);
        let cdp: CdpClient | undefined;
        try {
          cdp = await CdpClient.open(lease.sandbox.address(PORT), signal);
          const [front] = await new BrowserHost(lease.connection).pages(signal);
          return { sessionId: input.sessionId, result: await invokeAction(input.action, cdp, front?.id) };
        } finally {
          cdp?.close();
          lease.release();
        }
      },
    },
  };
}

function profileOf({ asked }: SessionRecord): Pick<data.GetBrowserSessionResponse, 'profileConfiguration'> {
  const { profileIdentifier } = asked;
  return profileIdentifier === undefined ? {} : { profileConfiguration: { profileIdentifier } };
}

function view(browser: Browser): control.GetBrowserResponse {
  return {
    ...summary(browser),
    name: browser.name,
    executionRoleArn: browser.executionRoleArn,
    networkConfiguration: browser.network,
    recording: recordingView(browser),
    lastUpdatedAt: new Date(browser.updatedAt),
  };
}

function recordingView({ recording }: Browser): control.RecordingConfig | undefined {
  return recording && { enabled: true, s3Location: recording };
}

function summary({ id, arn, name, description, createdAt, updatedAt }: Browser): control.BrowserSummary {
  return {
    browserId: id,
    browserArn: arn,
    name,
    description,
    status: 'READY',
    createdAt: new Date(createdAt),
    lastUpdatedAt: new Date(updatedAt),
  };
}

function sessionSummary(browser: Browser, record: SessionRecord, live: boolean): data.BrowserSessionSummary {
  return {
    browserIdentifier: browser.id,
    sessionId: record.sessionId,
    name: record.asked.name,
    status: live ? 'READY' : 'TERMINATED',
    createdAt: new Date(record.createdAt),
    lastUpdatedAt: new Date(record.updatedAt),
  };
}

function streamsOf(
  { id }: Browser,
  { sessionId, automation }: SessionRecord,
  { origin }: Pick<RequestContext, 'origin'>,
): data.BrowserSessionStream {
  const path = { browserId: id, sessionId };
  return {
    automationStream: { streamEndpoint: streamAddress(origin, path, 'automation'), streamStatus: automation },
    liveViewStream: { streamEndpoint: streamAddress(origin, path, 'live-view') },
  };
}
