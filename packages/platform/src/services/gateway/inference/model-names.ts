import type { control } from '@agentplatform/contract';

type Mapping = control.ModelMapping | undefined;

/**
 * The id at the provider of what a client calls `asked`; undefined where the pattern is not for it. Where clients may leave the provider's prefix
 * out, it is that of the pattern.
 */
export function idAtProvider(asked: string, pattern: string, mapping: Mapping): string | undefined {
  if (matches(asked, pattern)) return asked;
  if (!strips(mapping)) return undefined;
  const [prefix, rest] = splitAt(pattern, mapping);
  return prefix !== undefined && matches(asked, rest) ? `${prefix}${asked}` : undefined;
}

/** What clients call a model by; undefined for a pattern, which is no model. */
export function shownId(pattern: string, mapping: Mapping): string | undefined {
  if (/[*?]/.test(pattern)) return undefined;
  return strips(mapping) ? splitAt(pattern, mapping)[1] : pattern;
}

function strips(mapping: Mapping): boolean {
  return mapping?.providerPrefix?.strip === true;
}

/** A pattern's prefix with its separator, and the rest; no prefix where there is none, or it is not one word. */
function splitAt(pattern: string, mapping: Mapping): [string | undefined, string] {
  const separator = mapping?.providerPrefix?.separator ?? '.';
  const at = pattern.indexOf(separator);
  const prefix = pattern.slice(0, at + 1);
  return at <= 0 || /[*?]/.test(prefix) ? [undefined, pattern] : [prefix, pattern.slice(at + 1)];
}

/** Whether a text is as a pattern of `*` and `?` says; in the product of both lengths at worst. */
export function matches(text: string, pattern: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  let i = 0;
  while (i < text.length) {
    if (pattern[at] === '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++resume;
    } else return false;
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}
