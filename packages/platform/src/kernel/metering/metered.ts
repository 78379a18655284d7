import type { Executor, Migration, RetentionRule } from '../storage/index.ts';
import { number, object, oneOf, type Shape, text } from '../stored-shape.ts';
import { type Unit, units } from './units.ts';

/** So many of a unit, whose they are. What is not known of it is an empty text. */
export interface Metered {
  /** Of UTC, such as 2026-01-31. */
  day: string;
  accountId: string;
  /** Name of the piece of the platform: the kind of a session, else that of the unit. */
  piece: string;
  resourceArn: string;
  sessionId: string;
  userId: string;
  unit: Unit;
  quantity: number;
}

const NAMES = Object.keys(units) as Unit[];

export const storedMetered: Shape<Metered> = object({
  ...{ day: text, accountId: text, piece: text, resourceArn: text, sessionId: text, userId: text },
  ...{ unit: oneOf(...NAMES), quantity: number },
});

export const meteringMigrations: Migration[] = [
  {
    id: 'metering/0001-metered',
    sql: `
      CREATE TABLE metered (
        day date NOT NULL,
        account_id text NOT NULL,
        piece text NOT NULL,
        resource_arn text NOT NULL,
        session_id text NOT NULL,
        user_id text NOT NULL,
        unit text NOT NULL,
        quantity bigint NOT NULL,
        PRIMARY KEY (account_id, day, resource_arn, session_id, user_id, piece, unit)
      );
      CREATE INDEX metered_by_day ON metered (day);`,
  },
];

/** Adds to what was counted, within the transaction that makes sure that it is counted once. */
export async function addMetered(tx: Pick<Executor, 'execute'>, rows: readonly Metered[]): Promise<void> {
  const counted = rows.filter(({ quantity }) => quantity > 0);
  if (counted.length === 0) return;
  await tx.execute(ADD, [JSON.stringify(counted)]);
}

const ADD = `
  INSERT INTO metered AS m (day, account_id, piece, resource_arn, session_id, user_id, unit, quantity)
  SELECT day, "accountId", piece, "resourceArn", "sessionId", "userId", unit, sum(quantity)
  FROM json_to_recordset($1::json) AS r(day date, "accountId" text, piece text, "resourceArn" text, "sessionId" text, "userId" text,
    unit text, quantity bigint)
  GROUP BY 1, 2, 3, 4, 5, 6, 7
  -- The same for all servers, so that none waits for another in a circle.
  ORDER BY 2, 1, 4, 5, 6, 3, 7
  ON CONFLICT (account_id, day, resource_arn, session_id, user_id, piece, unit) DO UPDATE SET quantity = m.quantity + excluded.quantity`;

/** Forgets the days before a moment, for a rule of retention. */
export function forgetMetered(database: Executor): RetentionRule['forget'] {
  return (before, limit) =>
    database.execute(
      `DELETE FROM metered WHERE ctid IN (SELECT ctid FROM metered WHERE day < to_timestamp($1 / 1000.0) AT TIME ZONE 'UTC' - interval '1 day' LIMIT ${limit})`,
      [Math.floor(before)],
    );
}
