import { createHash } from 'node:crypto';
import type { Problem } from './problem.ts';

/** The protocol's longest name, and the longest that every provider of models takes. */
const LONGEST_NAME = 128;
const LONGEST_EVERYWHERE = 64;
const SEPARATOR = '___';
/** What a target's prefix must leave of the longest name. */
const LEAST_ROOM = 16;

/** What is to be named: `key` tells it apart from all others of its document, whatever their order. */
export interface ToNamed {
  key: string;
  name: string;
}

/** The name under which a gateway lists a tool. */
export function prefixedName(target: string, name: string): string {
  return `${target}${SEPARATOR}${name}`;
}

/** Target and tool of a listed name; undefined for one without a prefix. Names of targets have no `_`. */
export function splitName(listed: string): { target: string; name: string } | undefined {
  const at = listed.indexOf(SEPARATOR);
  return at > 0 ? { target: listed.slice(0, at), name: listed.slice(at + SEPARATOR.length) } : undefined;
}

/** `name` in the protocol's letters: marks are taken off, and each run of anything else is one `_`. May be empty. */
export function cleanName(name: string): string {
  const parts = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .split(/[^A-Za-z0-9_.-]/);
  return parts.filter((part) => part !== '').join('_');
}

/**
 * Names for the tools of a target, by their keys: as they are where that is possible, else cleaned, cut and told apart by a hash of
 * the key. They depend on what is named and never on its order. The problems are warnings, and one error where the prefix leaves no room.
 */
export function toolNames(
  wanted: readonly ToNamed[],
  target: string,
): { names: Map<string, string>; problems: Problem[] } {
  const room = LONGEST_NAME - prefixedName(target, '').length;
  if (room < LEAST_ROOM) return { names: new Map(), problems: [noRoom(target)] };
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const groups = Map.groupBy(wanted, ({ name }) => cleanName(name).slice(0, room));
  const late: ToNamed[] = [];
  for (const [cleaned, group] of groups) {
    const owner = ownerOf(cleaned, group);
    if (owner) {
      names.set(owner.key, cleaned);
      taken.add(cleaned);
    }
    late.push(...group.filter((one) => one !== owner));
  }
  for (const one of late.toSorted(byKey)) {
    const name = toldApart(one, room, taken);
    names.set(one.key, name);
    taken.add(name);
  }
  return { names, problems: wanted.flatMap((one) => warnings(one, names.get(one.key) ?? '', target)) };
}

/** Who has a name as it is: the only one that asks for it, or the only one that has it without cleaning. */
function ownerOf(cleaned: string, group: readonly ToNamed[]): ToNamed | undefined {
  if (cleaned === '') return undefined;
  const exact = group.filter(({ name }) => name === cleaned);
  const [only] = exact.length > 0 ? exact : group;
  if (exact.length > 1 || (exact.length === 0 && group.length > 1)) return undefined;
  return only && (exact.length === 1 || cleanName(only.name).length === cleaned.length) ? only : undefined;
}

function toldApart({ key, name }: ToNamed, room: number, taken: ReadonlySet<string>): string {
  const digest = createHash('sha256').update(key).digest('hex');
  for (let length = 6; length <= LEAST_ROOM - 2; length += 2) {
    const ending = `_${digest.slice(0, length)}`;
    const told = `${(cleanName(name) || 'tool').slice(0, room - ending.length)}${ending}`;
    if (!taken.has(told)) return told;
  }
  throw new Error(`No name is free for ${key}`);
}

function warnings({ key, name }: ToNamed, given: string, target: string): Problem[] {
  const found: Problem[] = [];
  const say = (message: string): void => void found.push({ severity: 'warning', message, where: key });
  if (given !== cleanName(name))
    say(`The name ${JSON.stringify(shown(name))} is taken, too long or no name; the tool is called ${given}.`);
  const listed = prefixedName(target, given);
  if (listed.length > LONGEST_EVERYWHERE)
    say(
      `The tool's listed name ${listed} has ${listed.length} characters; some model providers take no more than ${LONGEST_EVERYWHERE}.`,
    );
  return found;
}

function noRoom(target: string): Problem {
  const message = `The target's name ${shown(target)} leaves too little room for names of tools, which may have ${LONGEST_NAME} characters with it.`;
  return { severity: 'error', message };
}

const shown = (name: string): string => (name.length > 80 ? `${name.slice(0, 80)}…` : name);
const byKey = (a: ToNamed, b: ToNamed): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
