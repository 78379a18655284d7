import type { FastifyReply } from 'fastify';
import type { OpenCall, RouteSet } from '../../../kernel/http/index.ts';
import type { Grants } from '../flows/grants.ts';
import { ProviderError } from '../flows/provider-error.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { BrowserCookie } from './browser-cookie.ts';
import { titleOf } from './consent-routes.ts';
import { messagePage, sendPage, sendTo } from './page.ts';
import { formToken, isFormToken, readForm } from './page-form.ts';
import type { ConsentPortal } from './portal.ts';
import type { PortalLogin, SignIn } from './portal-login.ts';
import { connectionsPage, signInPage } from './portal-page.ts';
import { type PortalSessions, type PortalUser, SESSION_SECONDS } from './portal-sessions.ts';
import { type PortalSignIns, SIGN_IN_SECONDS } from './portal-sign-ins.ts';
import type { Portals } from './portals.ts';
import { revokeShown, shownGrants } from './shown-grants.ts';

export interface PortalRoutesDeps {
  portals: Portals;
  sessions: PortalSessions;
  signIns: PortalSignIns;
  login: PortalLogin;
  grants: Grants;
  /** Of the owner. */
  accountId: string;
  /** Providers that the portal's role may use, in the order of their names. */
  providersOf(portal: ConsentPortal): Promise<Oauth2Provider[]>;
  /** Where browsers reach the platform, such as `https://agents.example.com`; it may have a path. */
  publicUrl(): string;
  /** The public address of a portal. */
  portalUrl(id: string): string;
}

/** Portals are below it, each by its id. */
export const PORTALS_PATH = '/identities/portals';
const NO_PORTAL = 'There is no such portal.';
const AGAIN = 'Open the portal again to sign in.';

/** What of a request every page of a portal needs. */
interface Visit extends PortalRoutesDeps {
  portal: ConsentPortal;
  call: OpenCall;
  session: BrowserCookie;
  attempt: BrowserCookie;
}

/**
 * Consent portals: `GET PORTAL` is the Connections page of who has signed in, or leads to `PORTAL/sign-in`; `PORTAL/callback` is where the
 * provider sends people back to; `POST PORTAL` takes a grant back or signs out. Nobody is sent anywhere but to the provider and the portal.
 */
export function portalRoutes(deps: PortalRoutesDeps): RouteSet {
  const because = 'People sign in at the provider of the portal, and are known by a cookie after that.';
  const open = (answer: (visit: Visit) => Promise<FastifyReply>) => ({
    ...{ open: 'everybody' as const, because },
    async answer(call: OpenCall): Promise<FastifyReply> {
      const portal = await deps.portals.find(deps.accountId, call.params.portal ?? '');
      if (!portal) return sendPage(call.reply, 404, messagePage('Not found', NO_PORTAL));
      return answer({ ...deps, portal, call, ...cookiesOf(portal, deps.publicUrl()) });
    },
  });
  const url = `${PORTALS_PATH}/:portal`;
  return {
    name: 'portals',
    routes: [
      { method: 'GET', url, ...open(show) },
      { method: 'POST', url, ...open(change) },
      { method: 'GET', url: `${url}/sign-in`, ...open(signIn) },
      { method: 'GET', url: `${url}/callback`, ...open(comeBack) },
    ],
    writeError: (error, { reply }) =>
      error instanceof ProviderError
        ? sendPage(reply, 502, messagePage('You are not signed in', `${error.message} ${AGAIN}`))
        : undefined,
  };
}

/** Each portal has cookies of its own: who is signed in at one is not at another. */
function cookiesOf({ id }: ConsentPortal, publicUrl: string): Pick<Visit, 'session' | 'attempt'> {
  return {
    session: new BrowserCookie({ publicUrl, purpose: `portal-${id}`, seconds: SESSION_SECONDS }),
    attempt: new BrowserCookie({ publicUrl, purpose: `sign-in-${id}`, seconds: SIGN_IN_SECONDS }),
  };
}

async function signedIn({
  call,
  session,
  sessions,
  portal,
}: Visit): Promise<{ id: string; user: PortalUser } | undefined> {
  const id = session.read(call.request.headers.cookie);
  const user = id === undefined ? undefined : await sessions.find(id, portal.arn);
  return id !== undefined && user ? { id, user } : undefined;
}

async function show(visit: Visit): Promise<FastifyReply> {
  const { call, portal, portals, portalUrl } = visit;
  const who = await signedIn(visit);
  if (who) return sendConnections(visit, who, undefined);
  const provider = await portals.signIn(portal);
  if (!provider) return sendPage(call.reply, 404, messagePage('Not found', 'Nobody can sign in here any more.'));
  const { pathname } = new URL(portalUrl(portal.id));
  return sendPage(call.reply, 200, signInPage(portal.name, { title: titleOf(provider), href: `${pathname}/sign-in` }));
}

async function sendConnections(
  { call, portal, grants, providersOf, portalUrl }: Visit,
  { id, user }: { id: string; user: PortalUser },
  notice: string | undefined,
): Promise<FastifyReply> {
  const listed = await providersOf(portal);
  const { grants: shown, more } = await shownGrants(grants, holderOf(portal, user));
  const connections = listed.map((provider) => ({
    title: titleOf(provider),
    grants: shown.filter(({ providerArn }) => providerArn === provider.arn),
  }));
  const view = {
    ...{ portal: portal.name, description: portal.description, user: user.subject, connections, more, notice },
    action: new URL(portalUrl(portal.id)).pathname,
    fields: { token: formToken(id, `portal ${portal.arn}`) },
  };
  return sendPage(call.reply, 200, connectionsPage(view));
}

async function signIn(visit: Visit): Promise<FastifyReply> {
  const { call, attempt, login, signIns } = visit;
  const fresh = attempt.fresh();
  const begun = await signInOf(visit, fresh);
  if (!begun) return sendPage(call.reply, 404, messagePage('Not found', 'Nobody can sign in here any more.'));
  const { location, state } = await login.begin(begun);
  await signIns.begin({ portalArn: visit.portal.arn, browser: fresh, state });
  call.reply.header('set-cookie', attempt.header(fresh));
  return sendTo(call.reply, location);
}

async function comeBack(visit: Visit): Promise<FastifyReply> {
  const { call, portal, attempt, session, sessions, signIns, login, portalUrl } = visit;
  const { reply, request, query } = call;
  const tried = attempt.read(request.headers.cookie);
  const answer = { portalArn: portal.arn, browser: tried ?? '', state: query.get('state') ?? '' };
  const begun = tried !== undefined && (await signIns.take(answer)) ? await signInOf(visit, tried) : undefined;
  if (!begun)
    return sendPage(reply, 403, messagePage('Not from here', `This browser did not begin to sign in. ${AGAIN}`));
  reply.header('set-cookie', attempt.forget());
  const user = await login.finish(begun, query);
  const before = session.read(request.headers.cookie);
  if (before !== undefined) await sessions.end(before);
  // Never the one that the browser came with: somebody else may know that.
  const id = session.fresh();
  await sessions.begin(id, portal.arn, user);
  reply.header('set-cookie', session.header(id));
  return sendTo(reply, portalUrl(portal.id));
}

async function change(visit: Visit): Promise<FastifyReply> {
  const { call, portal, session, sessions, grants, portalUrl } = visit;
  const form = await readForm(call.request.raw);
  const who = await signedIn(visit);
  if (!who || !isFormToken(form?.get('token') ?? '', who.id, `portal ${portal.arn}`))
    return sendPage(
      call.reply,
      403,
      messagePage('Not from here', `This did not come from your page of the portal. ${AGAIN}`),
    );
  if (form?.has('signOut')) {
    await sessions.end(who.id);
    call.reply.header('set-cookie', session.forget());
    return sendTo(call.reply, portalUrl(portal.id));
  }
  const revoke = { id: form?.get('revoke') ?? '', signal: call.request.signal };
  const notice = await revokeShown(grants, holderOf(portal, who.user), revoke);
  return sendConnections(visit, who, notice ?? 'There was nothing to take back.');
}

async function signInOf({ portal, portals, portalUrl }: Visit, attempt: string): Promise<SignIn | undefined> {
  const provider = await portals.signIn(portal);
  return provider && { portal, provider, redirectUri: `${portalUrl(portal.id)}/callback`, attempt };
}

function holderOf({ accountId }: ConsentPortal, { issuer, subject }: PortalUser) {
  return { accountId, userNames: [issuer, subject] };
}
