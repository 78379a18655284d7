import { adminJson } from './admin.ts';
import type { Connection } from './connection.ts';

/** Those of these secrets that the runtime would not get, because nobody has set them; none where the user may not look. */
export async function unsetSecrets(
  connection: Connection,
  { agentRuntimeId }: { agentRuntimeId?: string | undefined },
  names: readonly string[] = [],
  signal?: AbortSignal,
): Promise<string[]> {
  if (names.length === 0 || agentRuntimeId === undefined) return [];
  const request = { path: '/secrets', ...(signal && { signal }) };
  try {
    const lists = await Promise.all([
      adminJson(connection, request),
      adminJson(connection, { ...request, query: { runtime: agentRuntimeId } }),
    ]);
    const set = new Set(lists.flatMap(namesOf));
    return names.filter((name) => !set.has(name));
  } catch {
    return [];
  }
}

function namesOf(answer: unknown): unknown[] {
  const list = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'secrets') : undefined;
  return Array.isArray(list) ? list.map((one: { name?: unknown }) => one.name) : [];
}
