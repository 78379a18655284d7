import { reportAt, type Walk } from './walk.ts';
import { decodePercent } from './wire-request.ts';

/** Parameters by name, the values of each in order; `+` stands for a space, as in forms. */
export function parseQuery(query: string, walk: Walk): ReadonlyMap<string, string[]> {
  const parameters = new Map<string, string[]>();
  if (query === '') return parameters;
  for (const part of query.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const [rawName, rawValue] = equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)];
    const name = decodePercent(rawName.replaceAll('+', ' '));
    const value = decodePercent(rawValue.replaceAll('+', ' '));
    if (name === undefined || value === undefined) {
      reportAt(walk, 'query', `has a broken percent-encoding in ${JSON.stringify(part.slice(0, 60))}`);
      continue;
    }
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}
