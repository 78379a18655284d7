import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownerOf } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { type KnownCall, originOf, type RouteSet, SIGNED } from '../../../kernel/http/index.ts';
import { browserArn } from '../browser.ts';
import type { BrowserSessions } from '../browser-sessions.ts';
import type { Browsers } from '../browsers.ts';
import { mayAdminister } from '../callers.ts';
import type { ViewMode, ViewTickets } from './tickets.ts';

export interface ViewRoutesDeps {
  browsers: Pick<Browsers, 'get'>;
  sessions: Pick<BrowserSessions, 'get'>;
  tickets: ViewTickets;
  clock: Clock;
  region: string;
  /** Origins whose pages may show the live view in a frame, beside the platform's own; separated by spaces. */
  embedders: string;
}

/** What watching a session asks for. */
export const VIEW_ACTION = 'ConnectBrowserLiveViewStream';
/** Where the page is: it holds nothing of any session, so everybody may have it. */
const PAGE = '/browser-streams/live-view';
/** Longest time for which a ticket counts: no session lives longer. */
const LONGEST_MS = 8 * 3600_000;

/** A file of the page, as it is beside this one. */
interface Asset {
  name: string;
  type: string;
}

const ASSETS: readonly Asset[] = [
  { name: 'live-view.js', type: 'text/javascript; charset=utf-8' },
  { name: 'live-view.css', type: 'text/css; charset=utf-8' },
];

/**
 * The page on which people watch a session and take control of it. The presigned address leads to the page with a ticket in its fragment
 * (`ViewTickets`), so that it stays whole through reloads.
 */
export function viewRoutes(deps: ViewRoutesDeps): RouteSet {
  const read = (name: string): Buffer => readFileSync(join(import.meta.dirname, 'page', name));
  const page = read('live-view.html');
  return {
    name: 'browser live view',
    headers: () => ({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }),
    routes: [
      {
        method: 'GET',
        url: '/browser-streams/:browserId/sessions/:sessionId/live-view',
        credentials: SIGNED,
        action: `bedrock-agentcore:${VIEW_ACTION}`,
        ask(call) {
          const { browserId = '' } = call.params;
          const resource = browserArn(browserId, deps.region, call.accountId);
          return {
            rights: { action: `bedrock-agentcore:${VIEW_ACTION}`, resource },
            answer: () => leadToPage(call, deps),
          };
        },
      },
      {
        method: 'GET',
        url: PAGE,
        open: 'everybody',
        because:
          'the page holds nothing of any session; what it shows comes through a WebSocket that asks for a ticket',
        answer: ({ request, reply }) =>
          reply
            .headers({
              'content-type': 'text/html; charset=utf-8',
              'cache-control': 'no-cache',
              'content-security-policy': contentPolicy(originOf(request.raw), deps.embedders),
            })
            .send(page),
      },
      ...ASSETS.map(({ name, type }) => {
        const content = read(name);
        return {
          method: 'GET' as const,
          url: `/browser-streams/${name}`,
          open: 'everybody' as const,
          because: 'a part of the page, the same for everybody',
          answer: ({ reply }: Pick<KnownCall, 'reply'>) =>
            reply.headers({ 'content-type': type, 'cache-control': 'no-cache' }).send(content),
        };
      }),
    ],
  };
}

/** Sends the caller to the page, with a ticket for this session. Rejects with ResourceNotFoundException for one that is not his. */
async function leadToPage(call: KnownCall, { browsers, sessions, tickets, clock }: ViewRoutesDeps): Promise<unknown> {
  const { params, query, principal, accountId, reply } = call;
  const { browserId = '', sessionId = '' } = params;
  const browser = await browsers.get(browserId, accountId);
  const require = async (action: string, resource: string): Promise<void> => call.require(action, resource);
  const caller = { accountId, owner: ownerOf(principal), administers: () => mayAdminister(require, browser.arn) };
  const { record } = await sessions.get(browser, caller, sessionId);
  const mode: ViewMode = query.get('mode') === 'read-only' ? 'read-only' : 'full';
  const ticket = tickets.issue({
    ...{ browserId, sessionId, mode, accountId },
    accessKeyId: principal.accessKeyId,
    sessionToken: query.get('X-Amz-Security-Token') ?? undefined,
    endsAt: Math.min(record.createdAt + record.asked.timeoutSeconds * 1000, clock.now() + LONGEST_MS),
  });
  const fragment = new URLSearchParams({ browser: browserId, session: sessionId, mode, ticket });
  const frame = query.has('embed') ? '?embed' : '';
  return reply
    .code(303)
    .headers({ location: `${PAGE}${frame}#${fragment}`, 'cache-control': 'no-store' })
    .send('');
}

/** One script and one style, each by its address; nothing inline, nothing of elsewhere. */
function contentPolicy(origin: string, embedders: string): string {
  const socket = origin.replace(/^http/, 'ws');
  return [
    "default-src 'none'",
    `script-src ${origin}/browser-streams/live-view.js`,
    `style-src ${origin}/browser-streams/live-view.css`,
    `connect-src ${socket}/browser-streams/`,
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors 'self' ${embedders}`.trimEnd(),
  ].join('; ');
}
