import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import { storedText } from '../../../kernel/stored-shape.ts';
import { type Message, messagesShape, type OpenTurn, openTurnShape } from './message.ts';

/** Whose conversation it is. */
export interface ConversationKey {
  harnessArn: string;
  sessionId: string;
}

export interface Conversation {
  messages: Message[];
  /** Absent where no turn waits for its client. */
  open: OpenTurn | undefined;
  /** One more with each change; 0 where there is none yet. */
  revision: number;
}

/** Of one conversation, as JSON. */
const MOST_BYTES = 32 * 2 ** 20;

/** The conversations of harnesses by session. A turn is stored whole, or not at all. */
export class ConversationStore {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  async load({ harnessArn, sessionId }: ConversationKey): Promise<Conversation> {
    const [row] = await this.#database.query<{ messages: string; open_turn: string | null; revision: number }>(
      'SELECT messages, open_turn, revision FROM harness_conversations WHERE harness_arn = $1 AND session_id = $2',
      [harnessArn, sessionId],
    );
    if (!row) return { messages: [], open: undefined, revision: 0 };
    const open = row.open_turn === null ? undefined : storedText(openTurnShape, row.open_turn);
    return { messages: storedText(messagesShape, row.messages), open, revision: row.revision };
  }

  /** Puts the conversation in the place of the one of `revision`. Rejects with ServiceQuotaExceededException for one that is too long, and ConflictException where another turn was faster. */
  async save({ harnessArn, sessionId }: ConversationKey, { messages, open, revision }: Conversation): Promise<void> {
    const texts = [JSON.stringify(messages), open === undefined ? null : JSON.stringify(open)];
    const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);
    if (bytes > MOST_BYTES)
      throw errors.quota(`The conversation takes ${bytes} bytes, and ${MOST_BYTES} are the limit.`, {
        remedy: 'Begin a new session, or have the harness truncate sooner.',
      });
    const now = this.#clock.now();
    const changed = await this.#database.execute(
      `INSERT INTO harness_conversations (harness_arn, session_id, messages, open_turn, revision, updated_at)
       VALUES ($1, $2, $3, $4, $5 + 1, $6)
       ON CONFLICT (harness_arn, session_id) DO UPDATE
       SET messages = excluded.messages, open_turn = excluded.open_turn, revision = excluded.revision, updated_at = excluded.updated_at
       WHERE harness_conversations.revision = $5`,
      [harnessArn, sessionId, ...texts, revision, now],
    );
    if (changed !== 1) throw errors.conflict('Another invocation of this session was faster.');
  }
}
