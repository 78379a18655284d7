/** The parts of an Amazon Resource Name. */
export interface Arn {
  partition: string;
  service: string;
  region: string;
  accountId: string;
  /** Everything behind the fifth colon, e.g. `runtime/my_agent-a1b2c3d4e5`. */
  resource: string;
}

/** Longest text that is looked at; the vendor's own limit for an ARN. */
const maxArn = 2048;

const pattern = /^arn:([a-z0-9-]*):([a-z0-9-]+):([a-z0-9-]*):([0-9]{12}|aws|):([^\s]+)$/;

/** The parts of an ARN, or undefined when `text` is none. */
export function parseArn(text: string): Arn | undefined {
  const parts = text.length <= maxArn ? pattern.exec(text) : null;
  if (parts === null) return undefined;
  const [, partition = '', service = '', region = '', accountId = '', resource = ''] = parts;
  return { partition, service, region, accountId, resource };
}

/** The ARN as text; the opposite of `parseArn`. */
export function formatArn({ partition, service, region, accountId, resource }: Arn): string {
  return `arn:${partition}:${service}:${region}:${accountId}:${resource}`;
}
