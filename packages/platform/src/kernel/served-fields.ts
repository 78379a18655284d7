import { errors, type FieldProblem } from '@agentplatform/contract';

/**
 * The fields of an operation, each `served` or with the reason why it is refused: none is kept without effect. A field without a line of its
 * own is what the nearest one above it is.
 */
export type FieldTable<Top extends string> = Readonly<Record<Top, string>> & Readonly<Record<string, string>>;

export const SERVED = 'served';

/** Throws ValidationException that names each field of the call that is not served. */
export function refuseUnserved(call: object, table: Readonly<Record<string, string>>): void {
  const fieldList = Object.entries(table).flatMap(([path, message]): FieldProblem[] =>
    message !== SERVED && given(call, path.split('.')) ? [{ name: path, message }] : [],
  );
  const [first] = fieldList;
  if (first) throw errors.validation(`${first.name} ${first.message}.`, { fieldList });
}

/** Whether there is anything at that path; an empty list is nothing. */
function given(value: unknown, [name, ...rest]: readonly string[]): boolean {
  if (value === undefined || value === null) return false;
  if (name === undefined) return !Array.isArray(value) || value.length > 0;
  if (Array.isArray(value)) return value.some((one) => given(one, [name, ...rest]));
  return typeof value === 'object' && Object.hasOwn(value, name) && given(Reflect.get(value, name), rest);
}
