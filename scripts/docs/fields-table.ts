import { table } from './table.ts';

/** The fields of some operations for a guide: served, or why they are refused. */
export function fieldsTable(
  tables: readonly { operations: string; fields: Readonly<Record<string, string>> }[],
): string {
  return tables
    .map(({ operations, fields }) => {
      const rows = Object.entries(fields).map(([field, state]) => [
        `\`${field}\``,
        state === 'served' ? 'served' : `refused: ${state}`,
      ]);
      return `### ${operations}\n\n${table(['field', 'here'], rows)}`;
    })
    .join('\n\n');
}
