/** What the head of a policy says, as far as it can be told without deciding anything. */
export interface PolicyScope {
  effect: 'permit' | 'forbid' | 'suppressOutput';
  /** The tools that it is about; undefined where it may be about any. */
  actions: readonly string[] | undefined;
  /** ARN of the one gateway that it is about; undefined where it may be about any. */
  gateway: string | undefined;
}

/** Whatever it may be: what cannot be read is never left out. */
const ANY: PolicyScope = { effect: 'forbid', actions: undefined, gateway: undefined };

type Token = { kind: 'word' | 'sign' | 'text'; value: string };

/**
 * The heads of the policies of a text. It decides only which policies are loaded for which gateway and what a broken one may reach, so whatever is
 * not plainly said counts as everything.
 */
export function scopesOf(text: string): PolicyScope[] {
  const tokens = tokensOf(text);
  if (!tokens) return [ANY];
  const scopes: PolicyScope[] = [];
  let at = 0;
  while (at < tokens.length) {
    const begin = skipAnnotations(tokens, at);
    const end = closing(tokens, begin + 1);
    if (end === undefined) return [...scopes, ANY];
    scopes.push(scopeOf(tokens[begin]?.value, tokens.slice(begin + 2, end)));
    at = afterSemicolon(tokens, end + 1);
  }
  return scopes;
}

/** Whether a policy may decide about that gateway. */
export function concerns(scopes: readonly PolicyScope[], gatewayArn: string): boolean {
  return scopes.some(({ gateway }) => gateway === undefined || gateway === gatewayArn);
}

/** Whether a policy may forbid that action. */
export function mayForbid(scopes: readonly PolicyScope[], action: string): boolean {
  return scopes.some(
    ({ effect, actions }) => effect !== 'permit' && (actions === undefined || actions.includes(action)),
  );
}

function scopeOf(effect: string | undefined, tokens: readonly Token[]): PolicyScope {
  if (effect !== 'permit' && effect !== 'forbid' && effect !== 'suppressOutput') return ANY;
  const [, action = [], resource = [], ...more] = splitAtCommas(tokens);
  if (more.length > 0) return { ...ANY, effect };
  return { effect, actions: actionsOf(action), gateway: gatewayOf(resource) };
}

function gatewayOf(tokens: readonly Token[]): string | undefined {
  const [name, is, ...entity] = tokens;
  if (name?.value !== 'resource' || is?.value !== '==') return undefined;
  return idOf(entity, 'Gateway');
}

function actionsOf(tokens: readonly Token[]): string[] | undefined {
  const [name, is, ...rest] = tokens;
  if (name?.value !== 'action') return undefined;
  const list = is?.value === 'in' && rest[0]?.value === '[' && rest.at(-1)?.value === ']';
  const entities = list ? splitAtCommas(rest.slice(1, -1)) : [rest];
  if (is?.value !== '==' && is?.value !== 'in') return undefined;
  const ids = entities.map((entity) => idOf(entity, 'Action'));
  // The name of a group stands for tools that are not known here.
  return ids.every((id): id is string => id?.includes('___') === true) ? ids : undefined;
}

/** Of `AgentCore::Kind::"id"`. */
function idOf(tokens: readonly Token[], kind: string): string | undefined {
  const [namespace, a, type, b, id, ...more] = tokens;
  const named = namespace?.value === 'AgentCore' && a?.value === '::' && type?.value === kind && b?.value === '::';
  return named && more.length === 0 && id?.kind === 'text' && !id.value.includes('\\') ? id.value : undefined;
}

function splitAtCommas(tokens: readonly Token[]): Token[][] {
  const parts: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token.kind === 'sign' && '([{'.includes(token.value)) depth++;
    if (token.kind === 'sign' && ')]}'.includes(token.value)) depth--;
    if (token.kind === 'sign' && token.value === ',' && depth === 0) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

function skipAnnotations(tokens: readonly Token[], from: number): number {
  let at = from;
  while (tokens[at]?.value === '@' && tokens[at]?.kind === 'sign') {
    at += 2;
    if (tokens[at]?.value === '(' && tokens[at]?.kind === 'sign') at = (closing(tokens, at) ?? tokens.length) + 1;
  }
  return at;
}

/** Where the bracket that opens at `from` closes. */
function closing(tokens: readonly Token[], from: number): number | undefined {
  if (tokens[from]?.value !== '(' || tokens[from].kind !== 'sign') return undefined;
  let depth = 0;
  for (let at = from; at < tokens.length; at++) {
    const { kind, value } = tokens[at] as Token;
    if (kind === 'sign' && value === '(') depth++;
    if (kind === 'sign' && value === ')' && --depth === 0) return at;
  }
  return undefined;
}

function afterSemicolon(tokens: readonly Token[], from: number): number {
  const at = tokens.findIndex(({ kind, value }, i) => i >= from && kind === 'sign' && value === ';');
  return at < 0 ? tokens.length : at + 1;
}

const TOKEN = /\s+|\/\/[^\n]*|("(?:[^"\\]|\\[\s\S])*")|([A-Za-z_][A-Za-z0-9_]*)|(::|==|[\s\S])/y;

/** Undefined for a text that ends in the middle of a string. */
function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text);
    if (!found) return undefined;
    const [, string, word, sign] = found;
    if (string !== undefined) tokens.push({ kind: 'text', value: string.slice(1, -1) });
    else if (word !== undefined) tokens.push({ kind: 'word', value: word });
    else if (sign === '"') return undefined;
    else if (sign !== undefined) tokens.push({ kind: 'sign', value: sign });
  }
  return tokens;
}
