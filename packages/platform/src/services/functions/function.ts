import { errors, formatArn, parseArn } from '@agentplatform/contract';
import { list, number, object, record, stored, text } from '../../kernel/stored-shape.ts';

/** In the table `resources`. */
export const FUNCTION_KIND = 'function';

/** What a call fixes of a function. */
export interface FunctionSettings {
  description: string;
  /** As on the wire: `python3.12`. */
  runtime: string;
  /** `FILE.NAME` */
  handler: string;
  /** The ARN of the role that it runs as. */
  role: string;
  timeoutSeconds: number;
  memoryMiB: number;
  environment: Record<string, string>;
}

/** The code of a function, made into an image. */
export interface FunctionCode {
  imageDigest: string;
  /** Of the zip, base64. */
  sha256: string;
  bytes: number;
  /** Where the zip came from; absent where the call brought it. */
  place?: CodePlace;
}

/** An object of the account's buckets. */
export interface CodePlace {
  bucket: string;
  key: string;
  versionId?: string;
}

/** What is kept of a function beside its name. */
export interface FunctionData extends FunctionSettings {
  code: FunctionCode;
  /** ARNs of the memories that whoever set its environment gave it (`kernel/auth/given-resources.ts`); absent in one of before November 2026. */
  given?: readonly string[];
  /** Another with each change, also where a function of this name was deleted and made again; sandboxes are those of one revision. */
  revision: string;
}

const storedCode = object(
  { imageDigest: text, sha256: text, bytes: number },
  { place: object({ bucket: text, key: text }, { versionId: text }) },
);

export const storedFunction = stored<FunctionData>(
  object<Omit<FunctionData, 'given'>, Pick<FunctionData, 'given'>>(
    {
      ...{ description: text, runtime: text, handler: text, role: text, revision: text },
      ...{ timeoutSeconds: number, memoryMiB: number, environment: record(text), code: storedCode },
    },
    { given: list(text) },
  ),
);

/** Code that runs for each event, in sandboxes of its own (AWS Lambda API reference: FunctionConfiguration). */
export interface PlatformFunction extends FunctionData {
  arn: string;
  name: string;
  accountId: string;
  /** Milliseconds since the epoch; tells a function from an earlier one of its name. */
  createdAt: number;
  updatedAt: number;
  /** Counted by the database: one more with each change. */
  version: number;
}

interface Home {
  region: string;
  accountId: string;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** The only version there is. */
export const LATEST = '$LATEST';

/** The ARN of a function; `*` as name stands for all of an account. */
export function functionArn({ region, accountId }: Home, name: string): string {
  return formatArn({ partition: 'aws', service: 'lambda', region, accountId, resource: `function:${name}` });
}

/**
 * The name in what a caller calls a function: a name, `ACCOUNT:function:NAME`, or an ARN, each with a qualifier or without. Throws
 * ValidationException for what is none, and ResourceNotFoundException for one of another account or region, or another version than `$LATEST`.
 */
export function functionName(text: string, { region, accountId }: Home, qualifier?: string): string {
  const arn = parseArn(text);
  const partial = /^(?:(\d{12}):)?(?:function:)?([^:]+)(?::([^:]+))?$/.exec(
    arn?.service === 'lambda' ? `${arn.accountId}:${arn.resource}` : text,
  );
  const [, account = accountId, name = '', version = LATEST] = partial ?? [];
  if (!NAME.test(name))
    throw errors.invalidField(
      'FunctionName',
      'must be a name (letters, digits, - and _, at most 64) or the ARN of one',
    );
  const there = account === accountId && (arn?.region ?? region) === region;
  if (!there) throw noFunction(text);
  for (const one of [version, qualifier ?? LATEST])
    if (one !== LATEST)
      throw errors.resourceNotFound(`The function ${name} has no version or alias ${one.slice(0, 128)}.`, {
        remedy: `Versions and aliases are not served; leave the qualifier out, or give ${LATEST}.`,
      });
  return name;
}

export function noFunction(name: string): Error {
  return errors.resourceNotFound(`There is no function ${name.slice(0, 200)} in this account and region.`, {
    remedy: 'ListFunctions lists those that exist.',
  });
}
