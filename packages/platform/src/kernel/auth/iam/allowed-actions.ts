import { type Policy, parsePolicy } from './iam-policy-document.ts';

/** The documents of all resources. */
export interface AllResourcePolicies {
  all(): Iterable<string>;
  /** Another object after each change. */
  readonly revision: object;
}

/** Which actions any policy of any resource allows to anybody; worked out once for each change of the policies. */
export class AllowedActions {
  #revision: object | undefined;
  /** By document; undefined for one that cannot be read. Those that stay are not read again. */
  #policies = new Map<string, Policy | undefined>();
  readonly #answers = new Map<string, boolean>();

  /** A document that cannot be read may allow anything. */
  has(action: string, policies: AllResourcePolicies): boolean {
    if (policies.revision !== this.#revision) this.#take(policies);
    let answer = this.#answers.get(action);
    if (answer === undefined) {
      answer = [...this.#policies.values()].some(
        (policy) =>
          policy === undefined || policy.statements.some((one) => one.effect === 'Allow' && one.matchesAction(action)),
      );
      this.#answers.set(action, answer);
    }
    return answer;
  }

  #take(policies: AllResourcePolicies): void {
    const before = this.#policies;
    this.#policies = new Map();
    for (const source of policies.all()) {
      this.#policies.set(source, before.has(source) ? before.get(source) : readable(source));
    }
    this.#answers.clear();
    this.#revision = policies.revision;
  }
}

function readable(source: string): Policy | undefined {
  try {
    return parsePolicy(source, 'resource');
  } catch {
    return undefined;
  }
}
