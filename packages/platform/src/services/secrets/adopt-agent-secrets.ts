import type { Secrets } from '../../kernel/secrets/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { newSecretSuffix, SECRET_KIND, secretArn } from './secret.ts';

/** Secrets of agents as versions before 2026-11 kept them: `arn:aws:agentplatform::ACCOUNT:secret/[RUNTIME/]NAME`. */
const FORMER_KIND = 'agent-secret';

interface Former {
  arn: string;
  account_id: string;
  parent: string;
  name: string;
}

/** Gives secrets of an earlier version the ARN that secrets have now; their values are sealed anew, because they are bound to it. */
export async function adoptAgentSecrets(deps: {
  database: Database;
  secrets: Secrets;
  region: string;
}): Promise<number> {
  const { database, secrets, region } = deps;
  const former = await database.query<Former>(
    'SELECT arn, account_id, parent, name FROM resources WHERE kind = $1 ORDER BY seq',
    [FORMER_KIND],
  );
  for (const { arn, account_id: accountId, parent, name } of former) {
    const value = await secrets.get({ accountId, name: arn });
    const runtimeId = parent === '' ? undefined : parent.slice(parent.lastIndexOf('/') + 1);
    const made = secretArn({ region, accountId }, { accountId, runtimeId }, name, newSecretSuffix());
    await database.transaction(async (tx) => {
      // Another server may be at it too: of two, one moves the row.
      const moved = await tx.execute('UPDATE resources SET kind = $2, arn = $3 WHERE arn = $1', [
        arn,
        SECRET_KIND,
        made,
      ]);
      if (moved === 0) return;
      if (value) await secrets.put({ accountId, name: made }, value, tx);
      await secrets.delete({ accountId, name: arn }, tx);
    });
  }
  return former.length;
}
