import type { MemoryRecordMetadataValue, MemoryRecordSummary } from '@aws-sdk/client-bedrock-agentcore';
import type { Item } from '@langchain/langgraph-checkpoint';

/** How an item of a LangGraph store is a long-term record, and a record an item; the Python SDK does the same. */

/** Metadata of a record that is an item. */
export const KEY = 'langgraph.key';
const FIELD = 'langgraph.field';
const CREATED = 'langgraph.created';
export const UNINDEXED = 'langgraph.unindexed';

/** `['facts', 'jane']` is `/facts/jane`; what a namespace cannot hold is escaped, so that no label reaches beyond its own. */
export function placeOf(namespace: readonly string[]): string {
  return `/${namespace.map((label) => escaped(label, /[^A-Za-z0-9_-]/gu, '*')).join('/')}`;
}

export function namespaceOf(place: string | undefined): string[] {
  const labels = (place ?? '').split('/').filter((label) => label !== '');
  return labels.map((label) => unescaped(label, /(?:\*[0-9a-f]{2})+/g));
}

/** The key as metadata can hold it. */
export function keyText(key: string): string {
  return escaped(key, /[^A-Za-z0-9 ._:/+@-]/gu, '=');
}

/** The text of a record, and the field that it is of: a value of one text is that text, any other one is JSON. */
export function contentOf(value: Item['value']): { text: string; field?: string } {
  const [[field, text] = [], ...others] = Object.entries(value);
  const isText = typeof text === 'string' && text.trim() !== '' && !text.includes('\u0000');
  if (others.length === 0 && isText && field !== undefined && /^[A-Za-z0-9_.-]{1,100}$/.test(field))
    return { text, field };
  return { text: JSON.stringify(value) };
}

export function metadataOf(
  key: string,
  { field, created, indexed }: { field: string | undefined; created: Date; indexed: boolean },
): Record<string, MemoryRecordMetadataValue> {
  return {
    [KEY]: { stringValue: keyText(key) },
    [CREATED]: { dateTimeValue: created },
    ...(field === undefined ? {} : { [FIELD]: { stringValue: field } }),
    ...(indexed ? {} : { [UNINDEXED]: { stringValue: 'true' } }),
  };
}

/** A record that is no item – a strategy extracted it, or another client wrote it – has its id as key and its text as `text`. */
export function itemOf(record: Omit<MemoryRecordSummary, 'score'>): Item {
  const { metadata = {}, memoryRecordId = '', content, namespaces, createdAt = new Date(0) } = record;
  const key = metadata[KEY]?.stringValue;
  const field = metadata[FIELD]?.stringValue ?? (key === undefined ? 'text' : undefined);
  const text = content?.text ?? '';
  return {
    namespace: namespaceOf(namespaces?.[0]),
    key: key === undefined ? memoryRecordId : unescaped(key, /(?:=[0-9a-f]{2})+/g),
    value: (field === undefined ? objectOf(text) : undefined) ?? { [field ?? 'text']: text },
    createdAt: metadata[CREATED]?.dateTimeValue ?? createdAt,
    updatedAt: createdAt,
  };
}

/** Undefined for what is no JSON object: somebody has given the record another text since. */
function objectOf(text: string): Item['value'] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function escaped(text: string, refused: RegExp, mark: string): string {
  const bytes = (found: string): string => Buffer.from(found).toString('hex').replace(/../g, `${mark}$&`);
  return text.replace(refused, bytes);
}

function unescaped(text: string, marked: RegExp): string {
  return text.replace(marked, (found) => Buffer.from(found.replace(/[*=]/g, ''), 'hex').toString());
}
