/** Property `name` of a decoded JSON value, or undefined when it is absent. */
export function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value ? Reflect.get(value, name) : undefined;
}

/** Property `name` when it is an array, else an empty one. */
export function items(value: unknown, name: string): unknown[] {
  const found = property(value, name);
  return Array.isArray(found) ? found : [];
}
