import { type data, errors } from '@agentplatform/contract';

type Operator = data.MemoryRecordOperatorType;

/** SQL comparison of each ordering operator. BEFORE and AFTER take moments, the others numbers. */
const COMPARISONS: Partial<Record<Operator, '<' | '<=' | '>' | '>='>> = {
  BEFORE: '<',
  AFTER: '>',
  GREATER_THAN: '>',
  GREATER_THAN_OR_EQUALS: '>=',
  LESS_THAN: '<',
  LESS_THAN_OR_EQUALS: '<=',
};

/**
 * The conditions of `metadataFilters` on the column `metadata`; appends their parameters. Throws a ValidationException
 * naming the filter whose value does not go with its operator.
 */
export function metadataFilterSql(
  filters: readonly data.MemoryMetadataFilterExpression[],
  params: unknown[],
  field: string,
): string[] {
  // The type is said because `->` takes text and integers alike.
  const bind = (value: string | number): string =>
    `$${params.push(value)}::${typeof value === 'number' ? 'numeric' : 'text'}`;
  return filters.map(({ left, operator, right }, index) => {
    const key = left.metadataKey;
    const at = `${field}[${index}].right`;
    if (operator === 'EXISTS' || operator === 'NOT_EXISTS') {
      if (right) throw errors.invalidField(at, `cannot be given for ${operator}`);
      return `${operator === 'EXISTS' ? '' : 'NOT '}jsonb_exists(metadata, ${bind(key)})`;
    }
    const value = right?.metadataValue;
    if (!value) throw errors.invalidField(at, `is needed for ${operator}`);
    if (operator === 'EQUALS_TO') return equals(key, value, bind);
    if (operator === 'CONTAINS') return contains(key, value, bind, at);
    return compares(key, operator, value, bind, at);
  });
}

type Bind = (value: string | number) => string;

function equals(key: string, value: data.MemoryRecordMetadataValue, bind: Bind): string {
  if (value.dateTimeValue)
    return `(metadata -> ${bind(key)} ->> 'dateTimeValue')::numeric = ${bind(value.dateTimeValue.getTime())}`;
  return `metadata -> ${bind(key)} = ${bind(JSON.stringify(value))}::jsonb`;
}

function contains(key: string, value: data.MemoryRecordMetadataValue, bind: Bind, at: string): string {
  if (value.stringValue === undefined) throw errors.invalidField(at, 'must be a stringValue for CONTAINS');
  const name = bind(key);
  const text = bind(value.stringValue);
  return `(jsonb_exists(metadata -> ${name} -> 'stringListValue', ${text})
    OR strpos(metadata -> ${name} ->> 'stringValue', ${text}) > 0)`;
}

function compares(
  key: string,
  operator: Operator,
  value: data.MemoryRecordMetadataValue,
  bind: Bind,
  at: string,
): string {
  const moment = operator === 'BEFORE' || operator === 'AFTER';
  const wanted = moment ? value.dateTimeValue?.getTime() : value.numberValue;
  if (wanted === undefined) {
    throw errors.invalidField(at, `must be a ${moment ? 'dateTimeValue' : 'numberValue'} for ${operator}`);
  }
  const member = moment ? 'dateTimeValue' : 'numberValue';
  return `(metadata -> ${bind(key)} ->> '${member}')::numeric ${COMPARISONS[operator]} ${bind(wanted)}`;
}
