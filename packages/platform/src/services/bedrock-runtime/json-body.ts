import { errors } from '@agentplatform/contract';
import type { Json, JsonSchema, ModelRequest } from '../../kernel/models/index.ts';

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

/** Sampling as both dialects name it; what is no number is left to the model's default. */
export function samplingOf({ temperature, top_p, top_k }: Members): Partial<ModelRequest> {
  return {
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof top_p === 'number' ? { topP: top_p } : {}),
    ...(typeof top_k === 'number' ? { topK: top_k } : {}),
  };
}

export function effortOf(value: unknown): 'low' | 'medium' | 'high' | undefined {
  return (['low', 'medium', 'high'] as const).find((one) => one === value);
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
