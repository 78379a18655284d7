import { createHmac, timingSafeEqual } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import type { Clock } from '../../clock.ts';
import { Lru } from '../../lru.ts';
import { SANDBOX_ENDPOINT_ADDRESS, type Sandbox } from '../../sandbox/index.ts';
import { list, storedText, text } from '../../stored-shape.ts';
import type { RoleCredentials, RoleSessions } from './role-sessions.ts';

/** Who runs in a sandbox, and as what. */
export interface SandboxRole {
  sandboxId: string;
  roleArn: string;
  /** ARN of the resource whose role that is. */
  sourceArn: string;
  /** ARNs of what was given to that resource. */
  given: readonly string[];
}

export interface SandboxCredentialsDeps {
  roles: Pick<RoleSessions, 'issueRoleCredentials'>;
  /** The sandbox of an id once it is made; undefined for one that is gone. */
  findSandbox(id: string): Promise<Pick<Sandbox, 'address'> | undefined>;
  /** 32 bytes that outlive the server: sandboxes do, too. */
  key: Uint8Array;
  /** How long credentials count, in seconds, 900 to 3600. New ones are issued when half of it is over. */
  ttlSeconds: number;
  clock: Clock;
}

/** Where a sandbox asks for its credentials. */
export const CREDENTIALS_PATH = '/v1/credentials';
/** Where an OpenTelemetry library in a sandbox sends its spans by itself; metrics and logs of agents are not taken. */
const TRACES = {
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://${SANDBOX_ENDPOINT_ADDRESS}/v1/traces`,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
};
/** A name that images do not use. */
const TOKEN_FILE = '/.agentplatform-token';
const MAX_TOKEN_CHARS = 4096;

/**
 * Credentials of its execution role for whoever runs in a sandbox, by the chain that AWS SDKs know as container credentials. Each
 * sandbox has a token of its own in its environment, which counts only when it comes from that sandbox's address; what is issued
 * ends with the sandbox.
 */
export class SandboxCredentials {
  readonly #deps: SandboxCredentialsDeps;
  readonly #issued = new Lru<string, RoleCredentials>(10_000);

  readonly #given = new Lru<string, true>(10_000);

  constructor(deps: SandboxCredentialsDeps) {
    this.#deps = deps;
  }

  /** What makes an AWS SDK in the sandbox call this platform as the role, with no configuration of its own. */
  environment(role: SandboxRole): Record<string, string> {
    return {
      AWS_ENDPOINT_URL: `http://${SANDBOX_ENDPOINT_ADDRESS}`,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://${SANDBOX_ENDPOINT_ADDRESS}${CREDENTIALS_PATH}`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: this.token(role),
      ...TRACES,
    };
  }

  /** The same where the environment is to be one for many sandboxes: the token, which is each one's own, is in a file. */
  environmentWithFile(role: SandboxRole): { env: Record<string, string>; files: { path: string; text: string }[] } {
    const { AWS_CONTAINER_AUTHORIZATION_TOKEN: text = '', ...env } = this.environment(role);
    return { env: { ...env, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: TOKEN_FILE }, files: [{ path: TOKEN_FILE, text }] };
  }

  /** Whether the sandbox of this id has been given credentials: its processes may remember them. */
  gave(sandboxId: string): boolean {
    return this.#given.get(sandboxId) ?? false;
  }

  /** The sandbox's own token: who it is, and a proof that this platform said so. */
  token({ sandboxId, roleArn, sourceArn, given }: SandboxRole): string {
    const claims = Buffer.from(JSON.stringify([sandboxId, roleArn, sourceArn, ...given])).toString('base64url');
    return `${claims}.${this.#proof(claims).toString('base64url')}`;
  }

  /** Credentials for the sandbox at `address` that shows `token`. Rejects with AccessDeniedException, the same for every wrong token. */
  async issue(token: string, address: string | undefined): Promise<RoleCredentials & { roleArn: string }> {
    const role = this.#read(token);
    const sandbox = role && (await this.#deps.findSandbox(role.sandboxId));
    if (!role || !sandbox || !address || sandbox.address(80).host !== address) {
      throw errors.accessDenied('The authorization token is not that of this sandbox.', {
        remedy: 'It is in AWS_CONTAINER_AUTHORIZATION_TOKEN of the sandbox, and counts there only.',
      });
    }
    const { roles, ttlSeconds, clock } = this.#deps;
    const { sandboxId, ...of } = role;
    const known = this.#issued.get(token);
    if (known && known.expiresAt - clock.now() > (ttlSeconds * 1000) / 2) return { ...known, roleArn: of.roleArn };
    const issued = roles.issueRoleCredentials({ ...of, sandboxId, sessionName: sandboxId, ttlSeconds });
    this.#issued.set(token, issued);
    this.#given.set(sandboxId, true);
    return { ...issued, roleArn: of.roleArn };
  }

  #read(token: string): SandboxRole | undefined {
    const [claims, proof, ...rest] = token.length > MAX_TOKEN_CHARS ? [] : token.split('.');
    if (claims === undefined || proof === undefined || rest.length > 0) return undefined;
    const expected = this.#proof(claims);
    const shown = Buffer.from(proof, 'base64url');
    if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) return undefined;
    // Proven: nobody but `token` has written it.
    const [sandboxId, roleArn, sourceArn, ...given] = storedText(
      list(text),
      Buffer.from(claims, 'base64url').toString('utf8'),
    );
    return sandboxId !== undefined && roleArn !== undefined && sourceArn !== undefined
      ? { sandboxId, roleArn, sourceArn, given }
      : undefined;
  }

  #proof(claims: string): Buffer {
    return createHmac('sha256', this.#deps.key).update(claims).digest();
  }
}
