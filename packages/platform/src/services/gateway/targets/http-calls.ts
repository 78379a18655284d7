import type { CallToolResult } from '@modelcontextprotocol/server';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import { CALL_MS } from '../call-times.ts';
import {
  buildRequest,
  createMask,
  type HttpRequest,
  type HttpTool,
  RefusedArgumentError,
  readAnswer,
} from '../http-tools/index.ts';
import type { Credential } from '../outbound/credential.ts';
import type { TargetCredentials } from '../outbound/target-credentials.ts';
import type { TargetGuard } from '../outbound/target-guard.ts';
import { ToolError } from '../tool-error.ts';
import type { JsonObject } from '../tools/index.ts';
import { checkArguments } from './check-arguments.ts';
import { passedBack, propagated } from './propagated.ts';
import type { ToolCall } from './target-kind.ts';

export interface HttpCallsDeps {
  /** The guard: who makes a target names addresses. */
  outbound: Outbound;
  credentials: Pick<TargetCredentials, 'of'>;
  guard: Pick<TargetGuard, 'run'>;
}

/** Of an answer: what a model could still read is far less. */
const MAX_ANSWER_BYTES = 6 * 1024 * 1024;

/** Calls tools that are one HTTP request each. */
export class HttpCalls {
  readonly #deps: HttpCallsDeps;

  constructor(deps: HttpCallsDeps) {
    this.#deps = deps;
  }

  /** Rejects with ToolError for arguments that do not fit, OutboundError, and what credentials reject with. */
  async call(call: ToolCall): Promise<CallToolResult> {
    // Made by a document: each of those has its template.
    const tool = call.tool as HttpTool;
    const { gateway, target, caller, signal } = call;
    // What JSON brought, checked against the schema below.
    const args = call.arguments as JsonObject;
    checkArguments(tool, args);
    const request = requestOf(tool, args);
    const credential = await this.#deps.credentials.of(target, target.live, gateway, {
      principal: caller.principal,
      signal,
    });
    const more = propagated(target.live.metadataConfiguration, caller);
    for (const [name] of credential.query)
      if (request.url.searchParams.has(name)) request.url.searchParams.delete(name);
    appendQuery(request.url, [
      ...more.query.filter(([name]) => !credential.query.some(([own]) => own === name)),
      ...credential.query,
    ]);
    return this.#deps.guard.run(target, () =>
      this.#send(tool, request, { propagated: more.headers, credential, call }),
    );
  }

  async #send(
    tool: HttpTool,
    { method, url, headers, body }: HttpRequest,
    {
      propagated,
      credential,
      call: { signal, caller, target },
    }: { propagated: Record<string, string>; credential: Credential; call: ToolCall },
  ): Promise<CallToolResult> {
    const unsigned = { method, url, headers: { ...propagated, ...headers, ...credential.headers }, body };
    const signed = await credential.sign?.({ ...unsigned, service: tool.http.service });
    const secrets = signed ? [...credential.secrets, signed.signature] : credential.secrets;
    const sent = signed ?? unsigned;
    // Apart: the bound of calls at once is the guard's for each target, and none that targets share.
    const answer = await this.#deps.outbound
      .apart()
      .fetch(sent.url, {
        ...{ method, headers: sent.headers },
        ...(body && { body }),
        ...{
          ca: target.live.certificateAuthority,
          signal,
          timeoutMs: CALL_MS,
          maxBytes: MAX_ANSWER_BYTES,
          redirects: redirectsOf(secrets),
        },
      })
      .catch((error: unknown) => {
        throw masked(error, secrets);
      });
    caller.passBack?.(passedBack(target.live.metadataConfiguration, answer.headers, createMask(secrets)));
    return { ...(await readAnswer(tool, answer, { maxBytes: MAX_ANSWER_BYTES, mask: secrets })) };
  }
}

function requestOf(tool: HttpTool, args: JsonObject): HttpRequest {
  try {
    return buildRequest(tool.http, args);
  } catch (error) {
    throw error instanceof RefusedArgumentError ? new ToolError(error.message, { cause: error }) : error;
  }
}

/** Leaves what is there as it is written: `URLSearchParams` would write it anew. */
function appendQuery(url: URL, pairs: readonly (readonly [string, string])[]): void {
  const more = pairs.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
  if (more !== '') url.search = url.search === '' ? more : `${url.search}&${more}`;
}

/** A credential goes to the address that the document names, and nowhere else. */
function redirectsOf(secrets: readonly string[]): number {
  return secrets.length > 0 ? 0 : 5;
}

/** Nothing that a credential is a part of is told. */
function masked(error: unknown, secrets: readonly string[]): unknown {
  if (!(error instanceof Error) || secrets.length === 0) return error;
  error.message = createMask(secrets).text(error.message);
  return error;
}
