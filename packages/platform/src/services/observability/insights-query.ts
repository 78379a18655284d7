import { observabilityErrors } from './error-kinds.ts';

/** A condition on one document. */
export type Condition = { kind: 'equals' | 'like'; field: string; value: string } | { kind: 'present'; field: string };

/** A query of CloudWatch Logs Insights, as far as it is known here. */
export interface InsightsQuery {
  fields: string[];
  conditions: Condition[];
  newestFirst: boolean;
  limit: number;
}

const FIELD = '@?[A-Za-z_][A-Za-z0-9_.]{0,127}';
const FIELDS = new RegExp(`^fields ${FIELD}(?:, ?${FIELD}){0,20}$`);
const PRESENT = new RegExp(`^filter ispresent\\((${FIELD})\\)$`);
const COMPARED = new RegExp(`^filter (${FIELD}) (=|like) "([^"]{0,512})"$`);
const SORTED = /^sort @timestamp (asc|desc)$/;
const LIMITED = /^limit (\d{1,5})$/;
const MOST = 10_000;

/**
 * Reads a query: `fields`, `filter` with `=`, `like` or `ispresent`, `sort @timestamp`, `limit`, which is what the vendor's evaluation client writes.
 * Throws MalformedQueryException for whatever else the language has.
 */
export function readInsightsQuery(text: string): InsightsQuery {
  const query: InsightsQuery = { fields: ['@timestamp', '@message'], conditions: [], newestFirst: true, limit: 1_000 };
  // Lines and blanks are one; what stands in quotes has none of the two marks that part commands.
  for (const part of text.split(/[|\n]/)) {
    const command = part.split(/\s/).filter(Boolean).join(' ');
    if (command !== '') apply(command, query);
  }
  // The client that sorts by itself asks for all that there may be.
  if (!text.includes('limit ')) query.limit = MOST;
  return query;
}

function apply(command: string, query: InsightsQuery): void {
  const present = PRESENT.exec(command);
  const compared = COMPARED.exec(command);
  const sorted = SORTED.exec(command);
  const limited = LIMITED.exec(command);
  if (FIELDS.test(command)) query.fields = command.slice('fields '.length).split(/, ?/);
  else if (present) query.conditions.push({ kind: 'present', field: present[1] ?? '' });
  else if (compared) {
    const [, field = '', operator, value = ''] = compared;
    query.conditions.push({ kind: operator === '=' ? 'equals' : 'like', field, value });
  } else if (sorted) query.newestFirst = sorted[1] === 'desc';
  else if (limited) query.limit = Math.min(MOST, Math.max(1, Number(limited[1])));
  else
    throw observabilityErrors.MalformedQueryException(
      `"${command.slice(0, 80)}" is not known here: fields, filter with =, like or ispresent, sort @timestamp and limit are.`,
    );
}

/** Whether a document passes; `message` is its JSON. A name with dots stands for itself, or for the way through objects. */
export function passes(
  document: Readonly<Record<string, unknown>>,
  message: string,
  conditions: readonly Condition[],
): boolean {
  return conditions.every((condition) => {
    const found = condition.field === '@message' ? message : valueAt(document, condition.field);
    if (condition.kind === 'present') return found !== undefined && found !== null;
    const text = typeof found === 'string' ? found : found === undefined ? undefined : JSON.stringify(found);
    if (text === undefined) return false;
    return condition.kind === 'equals' ? text === condition.value : text.includes(condition.value);
  });
}

export function valueAt(document: unknown, path: string): unknown {
  if (typeof document !== 'object' || document === null) return undefined;
  if (Object.hasOwn(document, path)) return Reflect.get(document, path);
  for (let dot = path.indexOf('.'); dot > 0; dot = path.indexOf('.', dot + 1)) {
    const first = path.slice(0, dot);
    if (!Object.hasOwn(document, first)) continue;
    const found = valueAt(Reflect.get(document, first), path.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}
