import { errors } from '@agentplatform/contract';
import type { AccessKeyStore, Iam, Principal, SessionCredentials } from '../../../kernel/auth/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { Harness } from '../harnesses/harness.ts';

export interface HarnessRoleDeps {
  roles: Pick<Iam, 'issueRoleCredentials' | 'roleMay'>;
  keys: Pick<AccessKeyStore, 'find'>;
}

/** The shortest that there is. */
const SECONDS = 900;
const LONGEST_NAME = 64;

/** The execution role of a harness: what a harness does elsewhere, it does in its name. */
export class HarnessRole {
  readonly #deps: HarnessRoleDeps;
  readonly #harness: Pick<Harness, 'arn' | 'id' | 'accountId'>;
  readonly #roleArn: string;
  readonly #given: readonly string[];

  /** `given` are memories that whoever made the harness gave it. */
  constructor(
    harness: Pick<Harness, 'arn' | 'id' | 'accountId'>,
    { roleArn, given = [] }: { roleArn: string; given?: readonly string[] },
    deps: HarnessRoleDeps,
  ) {
    this.#deps = deps;
    this.#harness = harness;
    this.#roleArn = roleArn;
    this.#given = given;
  }

  /** As a caller of other services' ports. */
  get caller(): Caller {
    return {
      accountId: this.#harness.accountId,
      require: async (action, resource) => {
        if (this.#deps.roles.roleMay(this.#roleArn, action, resource)) return;
        throw errors.accessDenied(
          `The execution role of the harness, ${this.#roleArn}, may not ${action} on ${resource}.`,
          { remedy: 'Give the role a policy that allows it: agentcore iam put-policy.' },
        );
      },
    };
  }

  /** To sign requests with. Throws AccessDeniedException for a role that does not trust the platform. */
  credentials(): SessionCredentials {
    const { arn: sourceArn, id } = this.#harness;
    const sessionName = `harness-${id}`.slice(0, LONGEST_NAME);
    const session = { roleArn: this.#roleArn, sessionName, sourceArn, given: this.#given, ttlSeconds: SECONDS };
    return this.#deps.roles.issueRoleCredentials(session);
  }

  /** As who calls operations. Rejects as `credentials`. */
  async principal(): Promise<Principal> {
    const { accessKeyId, sessionToken } = this.credentials();
    const found = await this.#deps.keys.find(accessKeyId, sessionToken);
    if (found) return found.principal;
    throw errors.accessDenied(`The execution role of the harness, ${this.#roleArn}, is no more.`);
  }
}
