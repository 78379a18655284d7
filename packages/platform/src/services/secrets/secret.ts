import { randomInt } from 'node:crypto';
import { type ArnHome, formatArn } from '@agentplatform/contract';

/** In the table `resources`; a secret of one runtime is a child of it. */
export const SECRET_KIND = 'secret';

/** Bytes of one value: keys, tokens, and the JSON of a service account or a chain of certificates. */
export const MOST_SECRET_BYTES = 16 * 1024;

/** What is told of a secret: all but the secret. */
export interface StoredSecret {
  arn: string;
  name: string;
  /** The id of the only runtime that may use the secret; undefined for a secret of the account. */
  runtimeId: string | undefined;
  /** Milliseconds since the epoch. */
  setAt: number;
  /** ARN of who set the value that it has now. */
  setBy: string;
}

/** Whom a secret is for: the account, with any of its runtimes that is allowed it, or one runtime. */
export interface SecretScope {
  accountId: string;
  runtimeId?: string | undefined;
}

const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** What ends the ARN of a secret, as the wire has it: one that is deleted and made again has another ARN. */
export function newSecretSuffix(): string {
  return Array.from({ length: 6 }, () => ALPHANUMERIC[randomInt(ALPHANUMERIC.length)]).join('');
}

/** `secret:NAME-SUFFIX` of the account, `secret:RUNTIME/NAME-SUFFIX` of a runtime; with the suffix `*`, what stands for one that is not there. */
export function secretArn(
  { region, accountId, partition = 'aws' }: ArnHome,
  of: SecretScope,
  name: string,
  suffix: string,
): string {
  const { runtimeId } = of;
  const resource = `secret:${runtimeId === undefined ? '' : `${runtimeId}/`}${name}-${suffix}`;
  return formatArn({ partition, service: 'secretsmanager', region, accountId, resource });
}

/** Decides how a program is found, loaded or begun, or who it is to AWS: whoever may set a secret must not. */
const TAKEN =
  /^(?:AWS_.*|AGENTPLATFORM_.*|AGENTCORE_.*|LD_.*|DYLD_.*|GCONV_PATH|MALLOC_.*|GLIBC_.*|BASH_.*|ENV|IFS|SHELLOPTS|PS4|PATH|HOME|USER|SHELL|PWD|OLDPWD|TMPDIR|HOSTNAME|PORT|TERM|LANG|LC_.*|TZ|PYTHON.*|NODE_.*|NPM_.*|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|PERL5?(?:LIB|OPT|DB)|RUBY(?:LIB|OPT)|DOCKER_CONTAINER)$/;

/** Why a secret may not have that name, which is that of an environment variable too; undefined when it may. */
export function secretNameProblem(name: string): string | undefined {
  if (!/^[A-Z_][A-Z0-9_]{0,99}$/.test(name))
    return 'must be capital letters, digits and underscores, not begin with a digit and have at most 100 characters';
  return TAKEN.test(name)
    ? 'is a name that the platform, AWS or the language of the agent gives a meaning to'
    : undefined;
}

/** Why a text cannot be a secret; undefined when it can. The text is not in it. */
export function secretValueProblem(value: string): string | undefined {
  if (value === '') return 'must not be empty';
  if (value.includes('\0')) return 'must not have a NUL character, which no environment variable can hold';
  return Buffer.byteLength(value) > MOST_SECRET_BYTES ? `must have at most ${MOST_SECRET_BYTES} bytes` : undefined;
}
