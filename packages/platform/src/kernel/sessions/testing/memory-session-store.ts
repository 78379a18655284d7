import type { EndReason } from '../session-state.ts';
import type { SessionRow, SessionStore, SessionSummary } from '../session-store.ts';

interface Kept extends SessionRow {
  activatedAt: number | undefined;
  endedAt: number | undefined;
  endReason: EndReason | 'lost' | undefined;
}

/** The session store without a database; held to the same contract suite. */
export class MemorySessionStore implements SessionStore {
  readonly rows = new Map<string, Kept>();

  async begin(row: SessionRow): Promise<void> {
    this.rows.set(row.sandboxId, { ...row, activatedAt: undefined, endedAt: undefined, endReason: undefined });
  }

  async activate(sandboxId: string, at: number): Promise<void> {
    const row = this.rows.get(sandboxId);
    if (row && row.endedAt === undefined) row.activatedAt = at;
  }

  async end(sandboxId: string, reason: EndReason | 'lost', at: number): Promise<void> {
    const row = this.rows.get(sandboxId);
    if (row && row.endedAt === undefined) Object.assign(row, { endedAt: at, endReason: reason });
  }

  async live(): Promise<(SessionRow & { active: boolean; activatedAt: number | undefined })[]> {
    return [...this.rows.values()]
      .filter((row) => row.endedAt === undefined)
      .map(({ endedAt: _, endReason: __, ...row }) => ({ ...row, active: row.activatedAt !== undefined }));
  }

  async list(resourceArn: string, limit: number): Promise<SessionSummary[]> {
    return [...this.rows.values()]
      .filter((row) => row.resourceArn === resourceArn)
      .sort((a, b) => b.createdAt - a.createdAt)
      .slice(0, limit)
      .map((row) => ({
        sandboxId: row.sandboxId,
        resourceArn: row.resourceArn,
        sessionId: row.sessionId,
        version: row.version,
        state: row.endedAt !== undefined ? 'ended' : row.activatedAt !== undefined ? 'active' : 'starting',
        createdAt: row.createdAt,
        endedAt: row.endedAt,
        endReason: row.endReason,
      }));
  }
}
