/** A value in a form in which equal means equal on the wire: bytes and dates as text, absent members left out. */
export function comparable(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, member]) => member !== undefined);
    return Object.fromEntries(entries.map(([key, member]) => [key, comparable(member)]));
  }
  return value;
}
