import type { DocumentValue } from '@agentplatform/contract';
import { isObject } from '../tools/json-pointer.ts';

/** As JSON-RPC 2.0 has them; those from -32000 on are left to implementations, and are here as MCP's own packages have them. */
export const JSON_RPC_CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  internalError: -32603,
  refused: -32000,
  noSession: -32001,
} as const;

/** An error in answer to a message of JSON-RPC. */
export type ErrorMessage = {
  jsonrpc: '2.0';
  /** Null where the message has none, or where it could not be read. */
  id: string | number | null;
  error: { code: number; message: string; data?: DocumentValue };
};

/** The error in answer to that message. */
export function errorMessage(error: ErrorMessage['error'], message?: unknown): ErrorMessage {
  const id = isObject(message) ? message.id : undefined;
  return { jsonrpc: '2.0', id: typeof id === 'string' || typeof id === 'number' ? id : null, error };
}

/** The refusal of a message before MCP's package reads it. */
export function refusal(status: number, code: keyof typeof JSON_RPC_CODES, text: string, message?: unknown): Response {
  return Response.json(errorMessage({ code: JSON_RPC_CODES[code], message: text }, message), { status });
}
