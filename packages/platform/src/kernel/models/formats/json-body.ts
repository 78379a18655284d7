import { errors } from '@agentplatform/contract';
import type { Effort, FilePart, Json, JsonSchema, ModelRequest } from '../model.ts';

/** An object of a body, by member. */
export type Members = Readonly<Record<string, unknown>>;

/** The members of an object; of anything else none. */
export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function objectAt(value: unknown, where: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(where, 'must be an object');
  return { ...value };
}

export function listAt(value: unknown, where: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(where, 'must be a list');
  return value;
}

export function textAt(value: unknown, where: string): string {
  if (typeof value !== 'string') throw wrong(where, 'must be a text');
  return value;
}

export function bytesAt(value: unknown, where: string): Uint8Array {
  return Buffer.from(textAt(value, where), 'base64');
}

/** Sampling as all formats name it; what is no number is left to the model’s default. */
export function samplingOf(body: Members): Partial<ModelRequest> {
  const { temperature, top_p, top_k, presence_penalty, frequency_penalty, seed } = body;
  return {
    ...(typeof presence_penalty === 'number' ? { presencePenalty: presence_penalty } : {}),
    ...(typeof frequency_penalty === 'number' ? { frequencyPenalty: frequency_penalty } : {}),
    ...(typeof seed === 'number' ? { seed } : {}),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof top_p === 'number' ? { topP: top_p } : {}),
    ...(typeof top_k === 'number' ? { topK: top_k } : {}),
  };
}

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;

export function effortOf(value: unknown): Effort | undefined {
  return value === 'max' ? 'xhigh' : EFFORTS.find((one) => one === value);
}

/** What OpenAI's formats say of the form of an answer: a text, any JSON, or JSON by a schema. */
export function jsonFormOf(form: Members, schema: Members, where: string): Pick<ModelRequest, 'json'> {
  if (form.type === undefined || form.type === 'text') return {};
  if (form.type === 'json_object') return { json: {} };
  if (form.type !== 'json_schema') throw wrong(`${where}.type`, 'is served as text, json_object and json_schema');
  const name = typeof schema.name === 'string' ? { name: schema.name } : {};
  return { json: { schema: schemaAt(schema.schema, `${where}.schema`), ...name } };
}

const DATA_URL = /^data:([\w.+/-]+);base64,/;

/** A file in a data: URL. Throws ValidationException for any other address: the platform fetches nothing for a caller. */
export function fileIn(url: unknown, where: string): FilePart {
  const text = typeof url === 'string' ? url : '';
  const head = DATA_URL.exec(text.slice(0, 200));
  if (!head?.[1]) throw wrong(where, 'is served as a data: URL in base64; images and files are not fetched');
  return { type: 'file', mediaType: head[1], data: Buffer.from(text.slice(head[0].length), 'base64') };
}

/** The input of a call, from its text of JSON. */
export function inputIn(text: unknown, where: string): Json {
  const given = textAt(text, where);
  try {
    return jsonOf(given === '' ? {} : JSON.parse(given));
  } catch {
    throw wrong(where, 'must be JSON');
  }
}

export function schemaAt(value: unknown, where: string): JsonSchema {
  return objectAt(value, where) as JsonSchema;
}

/** A value that came as JSON. */
export function jsonOf(value: unknown): Json {
  return value as Json;
}

export function wrong(where: string, message: string): Error {
  return errors.invalidField(`body.${where}`, message);
}
