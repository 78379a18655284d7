import { errors, type Paginator } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import { type KnownCall, type OpenCall, type RouteSet, readMembers, SIGNED } from '../../../kernel/http/index.ts';
import { type GrantList, type Grants, grantId, MOST_GRANTS } from '../flows/grants.ts';
import type { Grant } from '../flows/stored-tokens.ts';
import { BrowserCookie } from './browser-cookie.ts';
import { COOKIE_SECONDS } from './consent-routes.ts';
import type { GrantHolder, GrantLinks } from './grant-link.ts';
import { grantsPage } from './grants-page.ts';
import { messagePage, sendPage } from './page.ts';
import { formToken, isFormToken, readForm } from './page-form.ts';
import { revokeShown, shownGrants } from './shown-grants.ts';

export interface GrantsRoutesDeps {
  grants: Grants;
  links: GrantLinks;
  paginator: Paginator;
  /** Where browsers reach the platform, such as `https://agents.example.com`; it may have a path. */
  publicUrl(): string;
  /** ARN of the workload identity of that name. */
  workloadArn(accountId: string, name: string): string;
}

const GRANTS_PATH = '/identities/oauth2/grants';
const ADMIN_PATH = '/_platform/identity/grants';
const GONE = 'This link is no longer valid. Open your grants again from the application.';
const MAX_NAME = 2048;
const PAGE_SIZE = 100;
const LIST_GRANTS = 'agentplatform:ListGrants';

/**
 * What users have granted. `/identities/oauth2/grants` is a person's own page, reached by a link that an application gets for him;
 * `/_platform/identity/grants…` is for administrators and applications: list, revoke, and make such a link.
 */
export function grantsRoutes(deps: GrantsRoutesDeps): RouteSet {
  const because =
    'People have no credentials of the platform: the link is a secret, sealed for one person, and counts for minutes.';
  return {
    name: 'grants',
    routes: [
      { method: 'GET', url: GRANTS_PATH, open: 'everybody', because, answer: (call) => show(call, deps) },
      { method: 'POST', url: GRANTS_PATH, open: 'everybody', because, answer: (call) => revokeOwn(call, deps) },
      { method: 'GET', url: ADMIN_PATH, credentials: SIGNED, ask: (call) => list(call, deps) },
      { method: 'DELETE', url: `${ADMIN_PATH}/:id`, credentials: SIGNED, ask: (call) => revoke(call, deps) },
      { method: 'POST', url: `${ADMIN_PATH}/link`, credentials: SIGNED, ask: (call) => makeLink(call, deps) },
    ],
  };
}

const cookieOf = ({ publicUrl }: GrantsRoutesDeps): BrowserCookie =>
  new BrowserCookie({ publicUrl: publicUrl(), purpose: 'consent', seconds: COOKIE_SECONDS });

async function show(call: OpenCall, deps: GrantsRoutesDeps): Promise<FastifyReply> {
  const link = call.query.get('link') ?? '';
  const holder = deps.links.open(link);
  if (!holder) return sendPage(call.reply, 404, messagePage('Nothing to show', GONE));
  const cookie = cookieOf(deps);
  const browser = cookie.read(call.request.headers.cookie) ?? cookie.fresh();
  call.reply.header('set-cookie', cookie.header(browser));
  return sendGrants(call.reply, deps, { holder, link, browser, notice: undefined });
}

async function revokeOwn({ request, reply }: OpenCall, deps: GrantsRoutesDeps): Promise<FastifyReply> {
  const form = await readForm(request.raw);
  const link = form?.get('link') ?? '';
  const holder = deps.links.open(link);
  if (!holder) return sendPage(reply, 404, messagePage('Nothing to show', GONE));
  const browser = cookieOf(deps).read(request.headers.cookie);
  if (browser === undefined || !isFormToken(form?.get('token') ?? '', browser, `grants ${link}`))
    return sendPage(
      reply,
      403,
      messagePage('Not from here', 'This request did not come from the page in this browser. Open the link again.'),
    );
  const notice = await revokeShown(deps.grants, holder, { id: form?.get('revoke') ?? '', signal: request.signal });
  return sendGrants(reply, deps, { holder, link, browser, notice: notice ?? 'There was nothing to take back.' });
}

async function sendGrants(
  reply: FastifyReply,
  { grants, publicUrl }: GrantsRoutesDeps,
  of: { holder: GrantHolder; link: string; browser: string; notice: string | undefined },
): Promise<FastifyReply> {
  const { holder, link, browser, notice } = of;
  const view = {
    ...{ user: holder.userNames.at(-1) ?? '', ...(await shownGrants(grants, holder)), notice },
    action: `${new URL(publicUrl()).pathname.replace(/\/$/, '')}${GRANTS_PATH}`,
    fields: { link, token: formToken(browser, `grants ${link}`) },
  };
  return sendPage(reply, 200, grantsPage(view));
}

/** `agentplatform:ListGrants` on the workload identity that is asked about, or on all. */
function list({ accountId, query }: KnownCall, { grants, paginator, workloadArn }: GrantsRoutesDeps) {
  const { provider, workload, maxResults, nextToken, ...rest } = Object.fromEntries(query);
  const userNames = namesIn(rest);
  const filter = {
    ...(provider && { provider }),
    ...(workload && { workload }),
    ...(userNames && { userNames }),
  };
  const scope = { operation: LIST_GRANTS, accountId, filter };
  return {
    rights: { action: LIST_GRANTS, resource: workloadArn(accountId, workload || '*') },
    async answer() {
      // Written by `encode` below alone.
      const after = nextToken === undefined ? undefined : (paginator.decode(scope, nextToken) as GrantList['next']);
      const { grants: found, next } = await grants.list(accountId, filter, { limit: sizeIn(maxResults), after });
      const cursor = next && { key: next.key, grantedAt: next.grantedAt };
      return { grants: found.map(view), ...(cursor && { nextToken: paginator.encode(scope, cursor) }) };
    },
  };
}

function sizeIn(maxResults: string | undefined): number {
  const size = maxResults === undefined ? PAGE_SIZE : Number(maxResults);
  if (Number.isInteger(size) && size >= 1 && size <= MOST_GRANTS) return size;
  throw errors.invalidField('maxResults', `must be a whole number from 1 to ${MOST_GRANTS}`);
}

/** `agentplatform:RevokeGrant` on the workload identity that has it; of one that there is not, on any. */
async function revoke({ accountId, params, request }: KnownCall, { grants, workloadArn }: GrantsRoutesDeps) {
  const grant = await grants.find(accountId, params.id ?? '');
  return {
    rights: { action: 'agentplatform:RevokeGrant', resource: workloadArn(accountId, grant?.workload ?? '*') },
    async answer() {
      if (!grant) throw errors.resourceNotFound('There is no such grant in this account.');
      return { grant: view(grant), atProvider: await grants.revoke(accountId, grant, request.signal) };
    },
  };
}

/** `agentplatform:CreateGrantsLink` on all workload identities: whoever has the link sees and revokes whatever that user has granted. */
function makeLink({ accountId, body }: KnownCall, { links, publicUrl, workloadArn }: GrantsRoutesDeps) {
  return {
    rights: { action: 'agentplatform:CreateGrantsLink', resource: workloadArn(accountId, '*') },
    answer() {
      const userNames = namesIn(readMembers(body, '{"userId": "ada"}'));
      if (!userNames) throw errors.invalidField('userId', 'is required, or issuer and subject');
      const { link, expiresAt } = links.issue({ accountId, userNames });
      const url = `${publicUrl().replace(/\/$/, '')}${GRANTS_PATH}?${new URLSearchParams({ link })}`;
      return { url, expiresAt: new Date(expiresAt).toISOString() };
    },
  };
}

/** Undefined when no user is named. Throws ValidationException for half a user, and for one with two kinds of names. */
function namesIn({ userId, issuer, subject }: Record<string, unknown>): string[] | undefined {
  const given = userId === undefined ? [issuer, subject] : [userId];
  if (given.every((name) => name === undefined)) return undefined;
  const names = given.filter(
    (name): name is string => typeof name === 'string' && name !== '' && name.length <= MAX_NAME,
  );
  const both = userId !== undefined && (issuer !== undefined || subject !== undefined);
  if (both || names.length < given.length)
    throw errors.invalidField(
      'userId',
      `must be a text of at most ${MAX_NAME} characters, or issuer and subject must be`,
    );
  return names;
}

function view({ key, providerArn, workload, userNames, scopes, grantedAt }: Grant) {
  const [first, subject] = userNames;
  return {
    ...{ id: grantId(key), workload, credentialProviderArn: providerArn, scopes },
    user: subject === undefined ? { userId: first } : { issuer: first, subject },
    grantedAt: new Date(grantedAt).toISOString(),
  };
}
