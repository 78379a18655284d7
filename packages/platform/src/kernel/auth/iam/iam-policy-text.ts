/** Looks up a policy variable such as `aws:PrincipalTag/team`; `undefined` when the request has no single value for it. */
export type Variables = (name: string) => string | undefined;

interface Variable {
  name: string;
  /** `${key, 'default'}` */
  fallback: string | undefined;
}

type Token = { text: string } | { wild: '*' | '?' } | { variable: Variable };

/** A text of a policy, understood once: literal text, wildcards (where they count) and variables. */
export type Template = readonly Token[];

export interface TemplateRules {
  /** Whether `*` and `?` are wildcards; otherwise they are themselves. */
  wildcards: boolean;
  /** Whether `${…}` is replaced (policy version 2012-10-17). */
  variables: boolean;
}

/** Throws `SyntaxError` with what is wrong with a `${…}`. */
export function parseTemplate(source: string, rules: TemplateRules): Template {
  const tokens: Token[] = [];
  let text = '';
  const flush = (): void => {
    if (text !== '') tokens.push({ text });
    text = '';
  };
  for (let at = 0; at < source.length; at++) {
    const char = source.charAt(at);
    if (rules.wildcards && (char === '*' || char === '?')) {
      flush();
      tokens.push({ wild: char });
    } else if (rules.variables && source.startsWith('${', at)) {
      const end = source.indexOf('}', at);
      if (end < 0) throw new SyntaxError('has an unclosed policy variable');
      const inside = source.slice(at + 2, end);
      if (inside === '*' || inside === '?' || inside === '$') {
        text += inside;
      } else {
        flush();
        tokens.push({ variable: parseVariable(inside) });
      }
      at = end;
    } else {
      text += char;
    }
  }
  flush();
  return tokens;
}

function parseVariable(inside: string): Variable {
  const comma = inside.indexOf(',');
  const name = (comma < 0 ? inside : inside.slice(0, comma)).trim();
  if (!/^[A-Za-z0-9-]+:[^\s,${}]+$/.test(name)) throw new SyntaxError(`has a bad policy variable "\${${inside}}"`);
  if (comma < 0) return { name, fallback: undefined };
  const quoted = /^'([^']*)'$/.exec(inside.slice(comma + 1).trim());
  if (!quoted) throw new SyntaxError(`has a default that is not in single quotes in "\${${inside}}"`);
  return { name, fallback: quoted[1] ?? '' };
}

/** Splits at the first `count - 1` colons of the literal text, as an ARN falls into its six parts. */
export function splitTemplate(template: Template, count: number): Template[] {
  const parts: Token[][] = [[]];
  for (const token of template) {
    let rest = token;
    while ('text' in rest && parts.length < count && rest.text.includes(':')) {
      const at = rest.text.indexOf(':');
      if (at > 0) parts.at(-1)?.push({ text: rest.text.slice(0, at) });
      parts.push([]);
      rest = { text: rest.text.slice(at + 1) };
    }
    if (!('text' in rest) || rest.text !== '') parts.at(-1)?.push(rest);
  }
  return parts;
}

/** Makes the matcher of a template. A variable that has no value makes the whole text match nothing. */
export function compileTemplate(template: Template): (text: string, variables: Variables) => boolean {
  const fixed = template.every((token) => !('variable' in token));
  if (!fixed) {
    return (text, variables) => {
      const units = toUnits(template, variables);
      return units !== undefined && matchUnits(units, text);
    };
  }
  const [first, second, ...rest] = template;
  if (first === undefined) return (text) => text === '';
  if (second === undefined) {
    if ('text' in first) return (text) => text === first.text;
    if ('wild' in first && first.wild === '*') return () => true;
  } else if (rest.length === 0 && 'text' in first && 'wild' in second && second.wild === '*') {
    return (text) => text.startsWith(first.text);
  }
  const units = toUnits(template, () => undefined) ?? [];
  return (text) => matchUnits(units, text);
}

const ANY = -1;
const ONE = -2;

/** UTF-16 code units and the two wildcards. The value of a variable is always literal: a tag `*` matches only `*`. */
function toUnits(template: Template, variables: Variables): number[] | undefined {
  const units: number[] = [];
  for (const token of template) {
    if ('wild' in token) {
      units.push(token.wild === '*' ? ANY : ONE);
      continue;
    }
    const text = 'text' in token ? token.text : (variables(token.variable.name) ?? token.variable.fallback);
    if (text === undefined) return undefined;
    for (let i = 0; i < text.length; i++) units.push(text.charCodeAt(i));
  }
  return units;
}

/** Goes back only to the last `*`, so the work is at most pattern length times text length, never exponential. */
function matchUnits(units: readonly number[], text: string): boolean {
  let at = 0;
  let unit = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    const wanted = units[unit];
    if (wanted === ANY) {
      star = unit++;
      resume = at;
    } else if (wanted === ONE || wanted === text.charCodeAt(at)) {
      unit++;
      at++;
    } else if (star >= 0) {
      unit = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (units[unit] === ANY) unit++;
  return unit === units.length;
}
