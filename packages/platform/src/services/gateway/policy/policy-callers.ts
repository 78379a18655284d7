import { ServiceError } from '@agentplatform/contract';
import { CARRIED_SESSION_HEADER, WORKLOAD_TOKEN_HEADERS } from '../../../kernel/auth/index.ts';
import type { IdentityPort } from '../../identity/index.ts';
import type { CarriedSession, PolicyPort } from '../../policy/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { refuseUnknown, voucherOf } from './vouchers.ts';

export interface PolicyCallersDeps {
  identity: Pick<IdentityPort, 'openToken'>;
  policy: Pick<PolicyPort, 'carried' | 'sessionHeader'>;
}

type Asking = Pick<ToolCaller, 'headers' | 'principal'>;

/** For whom policies decide where an agent asks in somebody's policy session, and how that session gets to agents. */
export class PolicyCallers {
  readonly #deps: PolicyCallersDeps;

  constructor(deps: PolicyCallersDeps) {
    this.#deps = deps;
  }

  /** The session that a caller named. */
  sessionOf({ headers }: Pick<Asking, 'headers'>): string | undefined {
    return [headers[this.#deps.policy.sessionHeader]].flat()[0];
  }

  /**
   * The session that an agent goes on with for its caller. Rejects with UnauthorizedException for a workload access token and a session that count no
   * more, and with AccessDeniedException for a session that was begun by somebody whom this gateway would not let in.
   */
  async carried(gateway: Gateway, { headers }: Asking): Promise<CarriedSession | undefined> {
    const { accountId } = gateway;
    const { identity, policy } = this.#deps;
    const token = WORKLOAD_TOKEN_HEADERS.flatMap((name) => headers[name] ?? [])[0];
    if (token === undefined) return undefined;
    const { policySession } = await identity.openToken(token, accountId);
    if (policySession === undefined) return undefined;
    const session = policy.carried.open(policySession, accountId);
    refuseUnknown(gateway, session);
    return session;
  }

  /** What a request to a runtime of this platform says of the policy session that it is a part of. */
  async headersFor(gateway: Gateway, asking: Asking): Promise<Record<string, string>> {
    const carried = await this.carried(gateway, asking).catch(unlessRefused);
    const { principal } = asking;
    const vouchedBy = voucherOf(gateway, principal);
    const caller = { principal, accountId: gateway.accountId, id: this.sessionOf(asking), vouchedBy };
    const sealed = this.#deps.policy.carried.seal(caller, carried);
    return sealed === undefined ? {} : { [CARRIED_SESSION_HEADER]: sealed };
  }
}

/** A gateway that enforces has looked at the token by now; at others an agent is who it is. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ServiceError)) throw error;
}
