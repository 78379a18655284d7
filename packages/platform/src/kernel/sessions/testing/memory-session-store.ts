import { NotHeldError, type ServerHold } from '../server-hold.ts';
import type { EndReason } from '../session-state.ts';
import type {
  LiveSession,
  ServerHolder,
  SessionAddress,
  SessionRow,
  SessionStore,
  SessionSummary,
} from '../session-store.ts';

interface Kept extends SessionRow {
  serverId: string;
  epoch: number;
  activatedAt: number | undefined;
  endedAt: number | undefined;
  endReason: EndReason | 'lost' | undefined;
}

/** The session store without a database; held to the same contract suite. */
export class MemorySessionStore implements SessionStore {
  readonly rows = new Map<string, Kept>();
  /** Epochs of servers that were deposed. */
  readonly deposed = new Set<number>();

  async begin(row: SessionRow, hold: ServerHold, activatedAt?: number): Promise<ServerHolder | undefined> {
    const known = this.#live(row.resourceArn, row.sessionId);
    if (known) return { serverId: known.serverId, epoch: known.epoch, address: undefined };
    if (this.deposed.has(hold.epoch)) throw new NotHeldError();
    if (this.rows.has(row.sandboxId)) throw new Error(`the sandbox ${row.sandboxId} has a session already`);
    const { serverId, epoch } = hold;
    this.rows.set(row.sandboxId, { ...row, serverId, epoch, activatedAt, endedAt: undefined, endReason: undefined });
    return undefined;
  }

  async activate(sandboxId: string, at: number): Promise<boolean> {
    const row = this.rows.get(sandboxId);
    if (!row || row.endedAt !== undefined) return false;
    row.activatedAt = at;
    return true;
  }

  async holder(resourceArn: string, sessionId: string): Promise<ServerHolder | undefined> {
    const row = this.#live(resourceArn, sessionId);
    return row && { serverId: row.serverId, epoch: row.epoch, address: undefined };
  }

  async inSandbox(sandboxId: string): Promise<SessionAddress | undefined> {
    const row = this.rows.get(sandboxId);
    if (!row || row.endedAt !== undefined) return undefined;
    const { kind, accountId, resourceArn, sessionId } = row;
    return { kind, accountId, resourceArn, sessionId };
  }

  #live(resourceArn: string, sessionId: string): Kept | undefined {
    for (const row of this.rows.values())
      if (row.endedAt === undefined && row.resourceArn === resourceArn && row.sessionId === sessionId) return row;
    return undefined;
  }

  async end(sandboxId: string, reason: EndReason | 'lost', at: number): Promise<void> {
    const row = this.rows.get(sandboxId);
    if (row && row.endedAt === undefined) Object.assign(row, { endedAt: at, endReason: reason });
  }

  async live(serverId: string): Promise<(SessionRow & { active: boolean; activatedAt: number | undefined })[]> {
    return [...this.rows.values()]
      .filter((row) => row.endedAt === undefined && row.serverId === serverId)
      .map(({ endedAt: _, endReason: __, serverId: ___, epoch: ____, ...row }) => ({
        ...row,
        active: row.activatedAt !== undefined,
      }));
  }

  async of(arn: string): Promise<LiveSession[]> {
    return [...this.rows.values()]
      .filter((row) => row.endedAt === undefined && row.resourceArn === arn)
      .sort((a, b) => b.createdAt - a.createdAt)
      .map(({ endedAt: _, endReason: __, epoch: ___, activatedAt, ...row }) => ({
        ...row,
        state: activatedAt === undefined ? 'starting' : 'active',
      }));
  }

  async list(resourceArn: string, limit: number): Promise<SessionSummary[]> {
    return [...this.rows.values()]
      .filter((row) => row.resourceArn === resourceArn)
      .sort((a, b) => b.createdAt - a.createdAt)
      .slice(0, limit)
      .map((row) => ({
        sandboxId: row.sandboxId,
        kind: row.kind,
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
