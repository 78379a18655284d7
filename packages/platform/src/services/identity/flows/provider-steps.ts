/** The steps of all flows, in the order in which they are gone. */
const STEPS = [
  'discovery',
  'tls',
  'metadata',
  'authorization page',
  'consent',
  'user token',
  'token endpoint',
  'client authentication',
  'grant',
  'scopes',
] as const;

export type CheckedStepName = (typeof STEPS)[number];

/** `skipped`: a step before it failed, or there was nothing to look at. `waiting`: for a person. */
export interface CheckedStep {
  step: CheckedStepName;
  status: 'passed' | 'failed' | 'skipped' | 'waiting';
  /** What was found, or why it fails; has nothing of a secret. */
  message: string;
}

/** A flow, in the words of the wire. */
export type CheckedFlow = 'M2M' | 'USER_FEDERATION' | 'ON_BEHALF_OF_TOKEN_EXCHANGE';
export const CHECKED_FLOWS: readonly CheckedFlow[] = ['M2M', 'USER_FEDERATION', 'ON_BEHALF_OF_TOKEN_EXCHANGE'];

/** Steps that one flow has and others have not. */
const PARTICULAR: Readonly<Partial<Record<CheckedStepName, CheckedFlow>>> = {
  'authorization page': 'USER_FEDERATION',
  consent: 'USER_FEDERATION',
  'user token': 'ON_BEHALF_OF_TOKEN_EXCHANGE',
};

/** What a check found, so far. */
export class Findings {
  readonly #found = new Map<CheckedStepName, Omit<CheckedStep, 'step'>>();

  say(step: CheckedStepName, status: CheckedStep['status'], message: string): void {
    this.#found.set(step, { status, message });
  }

  /** All steps of a flow. */
  steps(flow: CheckedFlow): CheckedStep[] {
    const waits = [...this.#found.values()].some(({ status }) => status === 'waiting');
    const message = waits ? 'It comes after the consent.' : 'A step before it failed.';
    return STEPS.filter((step) => (PARTICULAR[step] ?? flow) === flow).map((step) => ({
      step,
      ...(this.#found.get(step) ?? { status: 'skipped', message }),
    }));
  }

  /** The token endpoint gave a token. A server may grant fewer scopes than requested. It then names them in `scope` (RFC 6749, section 3.3). */
  granted(scopes: readonly string[], scope: string | undefined): void {
    this.#answered();
    this.say('client authentication', 'passed', 'It took the client.');
    this.say('grant', 'passed', 'It gave a token.');
    const given = scope === undefined ? scopes : scope.split(/[ ,]+/);
    const missing = scopes.filter((one) => !given.includes(one));
    if (scopes.length === 0) this.say('scopes', 'skipped', 'None were asked for.');
    else if (missing.length > 0) this.say('scopes', 'failed', `It gave a token without: ${missing.join(' ')}.`);
    else this.say('scopes', 'passed', `It gave a token for: ${scopes.join(' ')}.`);
  }

  /**
   * The token endpoint gave none. A code of OAuth (RFC 6749, section 5.2) or of a vendor says how far the request came: a server that gives
   * one has answered, and looks at the client first.
   */
  refused(code: string | undefined, message: string): void {
    if (code === undefined) {
      this.say('token endpoint', 'failed', message);
      return;
    }
    this.#answered();
    if (isOfClient(code)) {
      this.say('client authentication', 'failed', message);
      return;
    }
    this.say('client authentication', 'passed', 'It took the client.');
    if (code === 'invalid_scope') {
      this.say('grant', 'passed', 'It takes requests of this kind.');
      this.say('scopes', 'failed', message);
    } else this.say('grant', 'failed', message);
  }

  #answered(): void {
    this.say('token endpoint', 'passed', 'It answers.');
  }
}

/** `invalid_client`, GitHub's `incorrect_client_credentials`, Slack's `bad_client_secret`; not `unauthorized_client`, which is a known one that may not. */
function isOfClient(code: string): boolean {
  return code !== 'unauthorized_client' && /(^|_)client(_|$)/.test(code);
}
