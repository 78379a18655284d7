import { CliError } from '../cli-error.ts';
import { adminJson } from './admin.ts';
import type { Connection } from './connection.ts';

/** A session that has a sandbox now. */
export interface LiveSession {
  sessionId: string;
  state: string;
  /** Isolation of its sandbox in words; empty when the platform does not say. */
  isolation: string;
  startedAt: string;
}

/** The live sessions of a runtime (`GET /_platform/runtimes/{id}/sessions`). */
export async function listSessions(connection: Connection, runtimeId: string): Promise<LiveSession[]> {
  const value = await adminJson(connection, { path: `/runtimes/${encodeURIComponent(runtimeId)}/sessions` });
  const list: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'sessions') : undefined;
  if (!Array.isArray(list)) throw new CliError('failure', 'The platform answered without a list of sessions.');
  return list.map((entry: unknown) => {
    const text = (name: string): string => {
      const field: unknown = typeof entry === 'object' && entry !== null ? Reflect.get(entry, name) : undefined;
      return field === undefined || field === null ? '' : String(field);
    };
    return {
      sessionId: text('sessionId'),
      state: text('state'),
      isolation: text('isolation'),
      startedAt: text('startedAt'),
    };
  });
}
