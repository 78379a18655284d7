import type { Counterexample } from './analyse.ts';
import type { DecisionRequest, Principal } from './types.ts';

const PRINCIPAL = /^AgentCore::(OAuthUser|IamEntity)::("(?:[^"\\]|\\.)*")$/;
const RESOURCE = /^AgentCore::Gateway::("(?:[^"\\]|\\.)*")$/;

/** A solver's example as the call of a gateway that it stands for; undefined for one that no client could make. */
export function callOf({
  principal,
  action,
  resource,
  context,
  entities,
}: Counterexample): DecisionRequest | undefined {
  const { input, system } = membersOf(context);
  const now = timeOf(membersOf(system).now);
  const [type, id] = [PRINCIPAL.exec(principal)?.[1], textOf(PRINCIPAL.exec(principal)?.[2])];
  const gateway = textOf(RESOURCE.exec(resource)?.[1]);
  const name = textOf(/^AgentCore::Action::("(?:[^"\\]|\\.)*")$/.exec(action)?.[1]);
  if (!isType(type) || id === undefined || gateway === undefined || name === undefined || !now) return undefined;
  const tags = tagsOf(entities, id);
  return { principal: { type, id, ...(tags && { tags }) }, action: name, resource: gateway, input: plain(input), now };
}

function isType(type: string | undefined): type is Principal['type'] {
  return type === 'OAuthUser' || type === 'IamEntity';
}

/** Cedar writes texts nearly as JSON does; undefined where it does not. */
function textOf(quoted: string | undefined): string | undefined {
  try {
    const text: unknown = quoted === undefined ? undefined : JSON.parse(quoted);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

function tagsOf(entities: unknown, id: string): Record<string, string> | undefined {
  const own = Array.isArray(entities) ? entities.find((one) => membersOf(membersOf(one).uid).id === id) : undefined;
  const tags = Object.entries(membersOf(membersOf(own).tags));
  return tags.length === 0 ? undefined : Object.fromEntries(tags.map(([name, value]) => [name, String(value)]));
}

/** A value of Cedar's JSON as a client writes it. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const written = extension(value);
  if (written !== undefined) return Number.isNaN(Number(written)) ? written : Number(written);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
}

/** Of a datetime, or of one so many milliseconds off; undefined for any other. */
function timeOf(value: unknown): Date | undefined {
  const { fn, args } = membersOf(membersOf(value)['__extn']);
  const [from, by] = fn === 'offset' && Array.isArray(args) ? args : [value, undefined];
  const [, ms] = /^(-?\d+)ms$/.exec(by === undefined ? '0ms' : (extension(by) ?? '')) ?? [];
  const time = new Date(Date.parse(extension(from) ?? '') + Number(ms));
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/** What an extension type such as `decimal` or `datetime` is made of. */
function extension(value: unknown): string | undefined {
  const { arg } = membersOf(membersOf(value)['__extn']);
  return typeof arg === 'string' ? arg : undefined;
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
