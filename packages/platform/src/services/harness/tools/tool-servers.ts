import { errors, parseArn } from '@agentplatform/contract';
import { type Principal, signRequest } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { OperationCalls } from '../../../kernel/http/index.ts';
import { Lru } from '../../../kernel/lru.ts';
import { type Outbound, outboundFetch } from '../../../kernel/outbound/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import { trimEnd } from '../../../kernel/trim-end.ts';
import type { IdentityPort, OauthCredentialRequest } from '../../identity/index.ts';
import type { Harness } from '../harnesses/harness.ts';
import { browser } from './browser.ts';
import { type HarnessTool, nameOf } from './check-tools.ts';
import { codeInterpreter } from './code-interpreter.ts';
import type { HarnessRole } from './harness-role.ts';
import { mcpServer } from './mcp-server.ts';
import type { SessionsOfTools } from './sessions-of-tools.ts';
import type { ToolServer } from './tool-server.ts';

export interface ToolServersDeps {
  /** The way out to addresses that users supplied. */
  outbound: Pick<Outbound, 'fetch'>;
  /** The way to this platform itself. */
  ownOutbound: Pick<Outbound, 'fetch'>;
  /** Where this platform is reached. */
  ownEndpoint(): string;
  calls: Pick<OperationCalls, 'call'>;
  sessions: SessionsOfTools;
  identity: Pick<IdentityPort, 'credentials'>;
  clock: Clock;
  region: string;
}

/** For whom tools are had. */
export interface ToolUser {
  harness: Harness;
  role: HarnessRole;
  /** Of the harness. */
  sessionId: string;
  ctx: Pick<RequestContext, 'requestId' | 'principal' | 'signal' | 'span' | 'sourceIp'>;
}

const LIMITS = { maxBytes: 64 * 2 ** 20, timeoutMs: 3_600_000 };
const MOST_SNAPSHOTS = 1_000;
const SIGNING_NAME = 'bedrock-agentcore';
const USUAL = { browser: 'aws.browser.v1', interpreter: 'aws.codeinterpreter.v1' };

/** Flows of Identity by the wire's grants. */
const FLOWS = {
  CLIENT_CREDENTIALS: 'M2M',
  TOKEN_EXCHANGE: 'ON_BEHALF_OF_TOKEN_EXCHANGE',
  AUTHORIZATION_CODE: 'USER_FEDERATION',
} as const;

/** The servers of tools that a harness or an invocation names, for one turn. */
export class ToolServers {
  readonly #deps: ToolServersDeps;
  /** Of the last snapshot of each browser, which the next turn may still mean. */
  readonly #refs = new Lru<string, Map<string, number>>(MOST_SNAPSHOTS);

  constructor(deps: ToolServersDeps) {
    this.#deps = deps;
  }

  /** All of them, side by side. Rejects with RuntimeClientError where tools cannot be had, and closes the others then. */
  async open(tools: readonly HarnessTool[], user: ToolUser, signal: AbortSignal): Promise<ToolServer[]> {
    const opening = tools.map((tool, index) => this.#open(tool, nameOf(tool, index), user, signal));
    const settled = await Promise.allSettled(opening);
    const open = settled.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
    const failed = settled.find((one) => one.status === 'rejected');
    if (!failed) return open;
    for (const server of open) void server.close();
    throw failed.reason;
  }

  async #open(
    { type, config }: HarnessTool,
    name: string,
    user: ToolUser,
    signal: AbortSignal,
  ): Promise<ToolServer | undefined> {
    const { remoteMcp, agentCoreGateway, agentCoreCodeInterpreter, agentCoreBrowser } = config ?? {};
    if (remoteMcp) {
      const { url, headers = {}, outboundAuth } = remoteMcp;
      if (outboundAuth?.awsIam) return mcpServer({ name, url, fetch: this.#signed(user, headers) }, signal);
      return mcpServer({ name, url, fetch: withHeaders(outboundFetch(this.#deps.outbound, LIMITS), headers) }, signal);
    }
    if (agentCoreGateway) return this.#gateway(agentCoreGateway, name, user, signal);
    if (type === 'agentcore_code_interpreter') {
      const interpreter = idIn(agentCoreCodeInterpreter?.codeInterpreterArn) ?? USUAL.interpreter;
      return codeInterpreter({ name, interpreter, ...(await this.#asRole(user)) });
    }
    if (type === 'agentcore_browser') {
      const id = idIn(agentCoreBrowser?.browserArn) ?? USUAL.browser;
      const streamOf = (sessionId: string) =>
        this.#stream(`/browser-streams/${id}/sessions/${sessionId}/automation`, user);
      const place = { name, browser: id, streamOf, ...(await this.#asRole(user)) };
      return browser({ ...place, refs: this.#refsOf(`${place.session}\n${name}`) });
    }
    return undefined;
  }

  async #gateway(
    { gatewayArn, outboundAuth }: NonNullable<NonNullable<HarnessTool['config']>['agentCoreGateway']>,
    name: string,
    user: ToolUser,
    signal: AbortSignal,
  ): Promise<ToolServer> {
    const id = parseArn(gatewayArn)?.resource.split('/')[1] ?? '';
    const url = `${trimEnd(this.#deps.ownEndpoint(), '/')}/gateways/${id}/mcp`;
    const own = outboundFetch(this.#deps.ownOutbound, LIMITS);
    if (outboundAuth?.none) return mcpServer({ name, url, fetch: own }, signal);
    if (!outboundAuth?.oauth) return mcpServer({ name, url, fetch: this.#signed(user, {}) }, signal);
    const {
      providerArn,
      scopes,
      customParameters,
      grantType = 'CLIENT_CREDENTIALS',
      defaultReturnUrl,
    } = outboundAuth.oauth;
    const given = await this.#deps.identity.credentials.oauth2Token({
      ...{ providerArn, scopes, customParameters, signal, flow: FLOWS[grantType], returnUrl: defaultReturnUrl },
      ...{ bearer: bearerFor(user.harness, user.ctx.principal), caller: user.role.caller },
    });
    if (given.accessToken === undefined)
      throw errors.runtimeClient(`The gateway ${name} needs the consent of the user: ${given.authorizationUrl ?? ''}`);
    return mcpServer({ name, url, fetch: withHeaders(own, { authorization: `Bearer ${given.accessToken}` }) }, signal);
  }

  #refsOf(key: string): Map<string, number> {
    const refs = this.#refs.get(key) ?? new Map<string, number>();
    this.#refs.set(key, refs);
    return refs;
  }

  /** Operations of the platform, called as the harness's role. */
  async #asRole({ ctx, harness, role, sessionId }: ToolUser) {
    const { calls, sessions } = this.#deps;
    const { requestId, sourceIp, signal, span } = ctx;
    const request = { ...{ requestId, sourceIp, signal, span }, headers: {}, origin: this.#deps.ownEndpoint() };
    const caller = { principal: await role.principal(), request };
    return { calls, sessions, caller, session: `${harness.arn}\n${sessionId}` };
  }

  /** A WebSocket of this platform, with the handshake signed as the harness's role. */
  async #stream(path: string, { role }: ToolUser): Promise<{ url: string; headers: Record<string, string> }> {
    const { ownEndpoint, clock, region } = this.#deps;
    const url = new URL(`${trimEnd(ownEndpoint(), '/')}${path}`);
    const scope = { service: SIGNING_NAME, region, at: clock.now() };
    const signed = await signRequest({ method: 'GET', url, headers: {} }, role.credentials(), scope);
    return { url: signed.url.href.replace(/^http/, 'ws'), headers: signed.headers };
  }

  /** Signed with the harness's role, and for this platform alone: what the platform issues is good nowhere else. */
  #signed({ role }: ToolUser, given: Readonly<Record<string, string>>): typeof fetch {
    const { ownOutbound, ownEndpoint, clock, region } = this.#deps;
    const send = outboundFetch(ownOutbound, LIMITS);
    return async (input, { method = 'GET', headers, body, signal } = {}) => {
      const url = new URL(String(input));
      if (url.origin !== new URL(ownEndpoint()).origin)
        throw new Error(`requests to ${url.host} are not signed: it is not this platform`);
      const text = typeof body === 'string' ? body : undefined;
      const unsigned = { method, url, headers: { ...given, ...Object.fromEntries(new Headers(headers)) }, body: text };
      const scope = { service: SIGNING_NAME, region, at: clock.now() };
      const signed = await signRequest(unsigned, role.credentials(), scope);
      return send(signed.url.href, {
        ...{ method, headers: signed.headers },
        ...(text === undefined ? {} : { body: text }),
        ...(signal ? { signal } : {}),
      });
    };
  }
}

function withHeaders(send: typeof fetch, given: Readonly<Record<string, string>>): typeof fetch {
  return (input, init = {}) =>
    send(input, { ...init, headers: { ...given, ...Object.fromEntries(new Headers(init.headers)) } });
}

function idIn(arn: string | undefined): string | undefined {
  return arn?.slice(arn.lastIndexOf('/') + 1);
}

/** The workload of a harness, for the subject of its caller's token. */
function bearerFor({ accountId, id: workload }: Harness, principal: Principal): OauthCredentialRequest['bearer'] {
  if (principal.kind !== 'oauth' || principal.subject === '') return { accountId, workload, user: undefined };
  const { vouchedBy, subject, token, discoveryUrl } = principal;
  const user = { kind: 'token' as const, issuer: vouchedBy, subject };
  return { accountId, workload, user, subjectToken: { token, discoveryUrl } };
}
