import type { FastifyReply } from 'fastify';
import type { OpenCall, RouteSet } from '../../../kernel/http/index.ts';
import { type Authorization, sessionUriOf } from '../flows/authorization.ts';
import { ProviderError } from '../flows/provider-error.ts';
import type { Returned, UserFederation } from '../flows/user-federation.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import { BrowserCookie } from './browser-cookie.ts';
import { type ConsentView, consentPage } from './consent-page.ts';
import { LEADING_HEADERS, messagePage, sendPage, sendTo } from './page.ts';
import { formToken, isFormToken, readForm } from './page-form.ts';

export interface ConsentRoutesDeps {
  federation: Pick<UserFederation, 'open' | 'parametersOf' | 'allow' | 'deny' | 'returned'>;
  /** The provider of an authorization, and the host of its page; undefined when it is gone. Rejects with `ProviderError`. */
  providerOf(authorization: Authorization): Promise<{ provider: Oauth2Provider; host: string } | undefined>;
  /** Where browsers reach the platform, such as `https://agents.example.com`; it may have a path. */
  publicUrl(): string;
}

export const AUTHORIZE_PATH = '/identities/oauth2/authorize';
export const CALLBACK_PATH = '/identities/oauth2/callback';
/** Longer than a consent may take. */
export const COOKIE_SECONDS = 3600;
const GONE = 'This link is no longer valid: it was used, it expired, or it was never valid. Ask the agent again.';

/**
 * The pages that people see when an agent asks for access: `GET` and `POST /identities/oauth2/authorize`, which asks, and
 * `GET /identities/oauth2/callback/{uuid}`, which a provider sends them back to. Who decides is proven by a cookie of this browser, and whose
 * consent it is by the application afterwards (`CompleteResourceTokenAuth`).
 */
export function consentRoutes(deps: ConsentRoutesDeps): RouteSet {
  const { federation } = deps;
  const because =
    'People have no credentials of the platform: the link is a secret, and the browser is told by a cookie.';
  const cookie = () => new BrowserCookie({ publicUrl: deps.publicUrl(), purpose: 'consent', seconds: COOKIE_SECONDS });

  async function show({ query, request, reply }: OpenCall): Promise<FastifyReply> {
    const authorization = await federation.open(query.get('request_uri') ?? '');
    const found = authorization && (await deps.providerOf(authorization));
    const parameters = authorization && (await federation.parametersOf(authorization));
    if (!authorization || !found || !parameters) return sendPage(reply, 404, messagePage('Nothing to allow', GONE));
    const browser = cookie().read(request.headers.cookie) ?? cookie().fresh();
    reply.header('set-cookie', cookie().header(browser));
    const action = `${new URL(deps.publicUrl()).pathname.replace(/\/$/, '')}${AUTHORIZE_PATH}`;
    return sendPage(
      reply,
      200,
      consentPage(viewOf(authorization, { ...found, parameters }, { action, browser })),
      LEADING_HEADERS,
    );
  }

  async function decide({ request, reply }: OpenCall): Promise<FastifyReply> {
    const form = await readForm(request.raw);
    const browser = cookie().read(request.headers.cookie);
    const authorization = await federation.open(form?.get('request_uri') ?? '');
    if (!authorization) return sendPage(reply, 404, messagePage('Nothing to allow', GONE));
    if (browser === undefined || !isFormToken(form?.get('token') ?? '', browser, `consent ${authorization.id}`))
      return sendPage(
        reply,
        403,
        messagePage('Not from here', 'This request did not come from the page in this browser. Open the link again.'),
      );
    if (form?.get('decision') !== 'allow') {
      await federation.deny(authorization);
      return sendPage(reply, 200, messagePage('Denied', 'The agent gets no access. You can close this page.'));
    }
    return sendTo(reply, await federation.allow(authorization, browser));
  }

  async function callback({ params, query, request, reply }: OpenCall): Promise<FastifyReply> {
    const browser = cookie().read(request.headers.cookie);
    const { provider: providerId = '' } = params;
    return answer(reply, await federation.returned({ providerId, parameters: query, browser }));
  }

  return {
    name: 'consent',
    routes: [
      { method: 'GET', url: AUTHORIZE_PATH, open: 'everybody', because, answer: show },
      { method: 'POST', url: AUTHORIZE_PATH, open: 'everybody', because, answer: decide },
      { method: 'GET', url: `${CALLBACK_PATH}/:provider`, open: 'everybody', because, answer: callback },
    ],
    writeError: (error, { reply }) =>
      error instanceof ProviderError
        ? sendPage(reply, 502, messagePage('The provider cannot be asked', error.message))
        : undefined,
  };
}

function answer(reply: FastifyReply, returned: Returned): FastifyReply {
  switch (returned.kind) {
    case 'application':
      return sendTo(reply, returned.url);
    case 'done':
      return sendPage(reply, 200, messagePage('Access allowed', 'The agent has access now. You can close this page.'));
    case 'failed':
      return sendPage(reply, 400, messagePage('No access', returned.message));
    case 'refused':
      return sendPage(reply, 403, messagePage('Not from here', returned.message));
  }
}

function viewOf(
  authorization: Authorization,
  { provider, host, parameters }: { provider: Oauth2Provider; host: string; parameters: ConsentView['parameters'] },
  { action, browser }: { action: string; browser: string },
): ConsentView {
  const { id, bearer, scopes, resources, audiences, returnUrl } = authorization;
  const { user } = bearer;
  return {
    agent: bearer.workload,
    vendor: provider.data.vendor,
    title: titleOf(provider),
    user: user === undefined ? '' : user.kind === 'id' ? user.id : user.subject,
    scopes,
    resources,
    audiences,
    parameters,
    providerHost: host,
    returnHost: returnUrl === undefined ? undefined : hostOf(returnUrl),
    action,
    fields: { request_uri: sessionUriOf(id), token: formToken(browser, `consent ${id}`) },
  };
}

/** What people call the provider: its vendor, and its name in the account where that says more. */
export function titleOf({ name, data: { vendor } }: Oauth2Provider): string {
  return vendor === 'CustomOauth2' ? name : `${VENDORS[vendor].title} (${name})`;
}

/** Of an app's own scheme (`myapp://back`) all that there is. */
function hostOf(url: string): string {
  return (URL.canParse(url) && new URL(url).host) || url;
}
