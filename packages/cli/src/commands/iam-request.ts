import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { CliError } from '../cli-error.ts';
import { type CommandText, platformCommand } from '../command.ts';
import { type AdminRequest, adminJson, segment } from '../platform/admin.ts';
import { type ConnectionFlags, findConnection } from '../platform/connection.ts';
import { columns, harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';

/** The owner of the policy. Exactly one of the two must be given. */
export interface OwnerFlags {
  user?: string;
  role?: string;
}

/** A command about the policies of a user or role. */
export function ownerCommand(name: string, words: CommandText) {
  return platformCommand(name, words).option('--user <name>', 'the user').option('--role <name>', 'the role');
}

/** The path of that user or role. Throws a `CliError` (usage) unless exactly one is named. */
export function ownerPath({ user, role }: OwnerFlags): string {
  if (user !== undefined && role === undefined) return `/users/${segment(user)}`;
  if (role !== undefined && user === undefined) return `/roles/${segment(role)}`;
  throw new CliError('usage', 'Say whose policy: either --user NAME or --role NAME.');
}

type IamRequest = Omit<AdminRequest, 'signal'>;

/** Calls `/_platform/iam…` and resolves with its JSON; undefined when it answers without a body. */
export async function iamRequest(terminal: Terminal, flags: ConnectionFlags, request: IamRequest): Promise<unknown> {
  const connection = await findConnection(terminal, flags);
  return adminJson(connection, { ...request, path: `/iam${request.path}`, signal: terminal.signal });
}

/** Prints the answer as JSON, or the sentence. */
export function printDone(terminal: Terminal, json: boolean | undefined, value: unknown, sentence: string): void {
  if (json) printJson(terminal, value ?? {});
  else print(terminal, sentence);
}

/** Prints a list that the answer holds under `member`, as JSON or as a table of those fields. */
export function printList(
  terminal: Terminal,
  json: boolean | undefined,
  value: unknown,
  { member, fields, none }: { member: string; fields: string[]; none: string },
): void {
  const list = fieldOf(value, member);
  if (!Array.isArray(list)) throw new CliError('failure', `The platform answered without ${member}.`);
  if (json) {
    printJson(terminal, list);
    return;
  }
  if (list.length === 0) {
    note(terminal, none);
    return;
  }
  const cell = (item: unknown, field: string): string => {
    const found = typeof item === 'object' ? fieldOf(item, field) : item;
    return field.endsWith('At') && typeof found === 'number' ? new Date(found).toISOString() : shown(found);
  };
  const rows = list.map((item: unknown) => fields.map((field) => cell(item, field)));
  for (const line of columns([fields.map((field) => field.toUpperCase()), ...rows])) print(terminal, line);
}

/** Prints an object as JSON, or the named members that it has, one on each line. */
export function printMembers(terminal: Terminal, json: boolean | undefined, value: unknown, fields: string[]): void {
  if (json) {
    printJson(terminal, value);
    return;
  }
  const known = fields.filter((field) => fieldOf(value, field) !== undefined);
  for (const line of columns(known.map((field) => [field, shown(fieldOf(value, field))]))) print(terminal, line);
}

function shown(value: unknown): string {
  return value === undefined ? '' : harmless(String(value));
}

/** The member `name` of an answer; undefined if the answer is not an object or does not have it. */
export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** The list under a name in an answer; empty if there is none. */
export function listIn(value: unknown, name: string): unknown[] {
  const found = fieldOf(value, name);
  return Array.isArray(found) ? found : [];
}

/** A member of an answer as text for a person; empty if there is none. */
export function textIn(value: unknown, name: string): string {
  const found = fieldOf(value, name);
  if (found === undefined || found === null) return '';
  return Array.isArray(found) ? found.join(', ') : String(found);
}

/** A policy document from a file, or from standard input for `-`. Rejects with a `CliError` (usage) when it is no JSON object. */
export async function readDocument(terminal: Terminal, file: string): Promise<object> {
  const content =
    file === '-'
      ? await text(terminal.stdin)
      : await readFile(file, 'utf8').catch((error: Error) => {
          throw new CliError('usage', `The policy cannot be read: ${error.message}`, undefined, { cause: error });
        });
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    throw new CliError('usage', `${file} is not valid JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new CliError('usage', `${file} holds no policy document; that is a JSON object with a Statement.`);
}
