import type { Executor, Migration } from '../../kernel/storage/index.ts';
import type { Tool } from './tools/index.ts';

/** Gateways and targets stand in the table `resources`; their tools, of which a document may bring thousands, and drafts of documents stand here. */
export const gatewayMigrations: readonly Migration[] = [
  {
    id: 'gateway/0001-tools',
    sql: `
      CREATE TABLE gateway_tools (
        target_arn text NOT NULL REFERENCES resources (arn) ON DELETE CASCADE,
        position int NOT NULL,
        tool jsonb NOT NULL,
        PRIMARY KEY (target_arn, position)
      );
      /* The text of a document from a bucket, until its tools are made: the platform reads it in the name of who named it. */
      CREATE TABLE gateway_documents (
        target_arn text PRIMARY KEY REFERENCES resources (arn) ON DELETE CASCADE,
        document text NOT NULL
      );`,
  },
];

/** Replaces the tools of a target. */
export async function writeTools(tx: Executor, targetArn: string, tools: readonly Tool[]): Promise<void> {
  await tx.execute('DELETE FROM gateway_tools WHERE target_arn = $1', [targetArn]);
  await tx.execute(
    `INSERT INTO gateway_tools (target_arn, position, tool)
     SELECT $1, ordinality, tool FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS t (tool, ordinality)`,
    [targetArn, JSON.stringify(tools)],
  );
}

/** The tools of these targets, by target, each in the order of its document. */
export async function readTools(
  executor: Pick<Executor, 'query'>,
  targetArns: readonly string[],
): Promise<Map<string, Tool[]>> {
  const rows = await executor.query<{ target_arn: string; tool: Tool }>(
    'SELECT target_arn, tool FROM gateway_tools WHERE target_arn = ANY($1) ORDER BY target_arn, position',
    [targetArns],
  );
  const tools = new Map<string, Tool[]>();
  for (const { target_arn: arn, tool } of rows) {
    const known = tools.get(arn);
    if (known) known.push(tool);
    else tools.set(arn, [tool]);
  }
  return tools;
}

/** Keeps the text of a target's document until its tools are made. */
export async function writeDocument(tx: Executor, targetArn: string, document: string | undefined): Promise<void> {
  await tx.execute('DELETE FROM gateway_documents WHERE target_arn = $1', [targetArn]);
  if (document !== undefined)
    await tx.execute('INSERT INTO gateway_documents (target_arn, document) VALUES ($1, $2)', [targetArn, document]);
}

/** The text that `writeDocument` kept; undefined when there is none. */
export async function readDocument(executor: Pick<Executor, 'query'>, targetArn: string): Promise<string | undefined> {
  const [row] = await executor.query<{ document: string }>(
    'SELECT document FROM gateway_documents WHERE target_arn = $1',
    [targetArn],
  );
  return row?.document;
}
