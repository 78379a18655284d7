import { errors } from '@agentplatform/contract';
import { keyOf, LimitEntries, wildcardsLast } from './limit-entries.ts';
import type { RateLimitData } from './rate-limit.ts';
import { isHeader, isOwnWord, saysWho } from './traffic.ts';

/** Throws ValidationException for what the model’s constraints do not say; `at` is the path of the limit in the call. */
export function checkRateLimit({ dimensionKeys, entries }: RateLimitData, at = ''): void {
  checkKeys(dimensionKeys, `${at}dimensionKeys`);
  const limit = new LimitEntries(dimensionKeys, []);
  const seen = new Set<string>();
  for (const [i, entry] of entries.entries()) {
    const path = `${at}entries.${i}`;
    const { dimensions, requests, tokens, connections } = entry;
    const given = Object.keys(dimensions);
    if (given.length !== dimensionKeys.length || !given.every((key) => dimensionKeys.includes(key)))
      throw errors.invalidField(`${path}.dimensions`, `must have a value for each of ${dimensionKeys.join(', ')}`);
    const values = limit.valuesOf(entry);
    if (!wildcardsLast(values))
      throw errors.invalidField(`${path}.dimensions`, 'must have * at the end alone, in the order of dimensionKeys');
    if (seen.has(keyOf(values))) throw errors.invalidField(`${path}.dimensions`, 'must not be those of another entry');
    seen.add(keyOf(values));
    for (const [of, rates] of Object.entries({ requests, tokens, connections }))
      if (rates?.some(({ rate }) => !Number.isInteger(rate)))
        throw errors.invalidField(`${path}.${of}`, 'must have a whole number as its rate');
    if (!requests && !tokens && !connections)
      throw errors.invalidField(path, 'must limit requests, tokens or connections');
    if (connections?.some(({ period }) => period !== 'second'))
      throw errors.invalidField(
        `${path}.connections`,
        'must have the period second: they are counted while they are open',
      );
  }
}

function checkKeys(keys: readonly string[], path: string): void {
  // Names of headers are the same in capitals.
  if (new Set(keys.map((key) => (isHeader(key) ? key.toLowerCase() : key))).size < keys.length)
    throw errors.invalidField(path, 'must not name a dimension twice');
  const own = keys.find(isOwnWord);
  if (own !== undefined && !keys.some(saysWho))
    throw errors.invalidField(
      path,
      `must have a dimension of the caller’s credentials beside ${own}, which each caller can choose ($.context.iam.… or $.context.jwt.…)`,
    );
}
