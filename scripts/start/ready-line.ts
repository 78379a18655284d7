/** The line of JSON that the platform prints once it serves. */
export interface ReadyLine {
  endpoint: string;
  credentialsFile: string;
  profile: string;
  region: string;
  accountId: string;
  isolation: string;
}

const fields = ['endpoint', 'credentialsFile', 'profile', 'region', 'accountId', 'isolation'] as const;

/** Decodes a line of stdout; undefined when it is another line. Throws when it says ready and lacks a field. */
export function readReadyLine(line: string): ReadyLine | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('ready' in value) || value.ready !== true) return undefined;
  const entries = fields.map((name) => {
    const field: unknown = Reflect.get(value, name);
    if (typeof field !== 'string') throw new Error(`The platform's ready line has no ${name}.`);
    return [name, field] as const;
  });
  const { endpoint, credentialsFile, profile, region, accountId, isolation } = Object.fromEntries(entries);
  return { endpoint, credentialsFile, profile, region, accountId, isolation } as ReadyLine;
}
