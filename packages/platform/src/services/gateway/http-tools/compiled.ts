import type { Problem } from '../tools/problem.ts';
import type { CredentialPlace, HttpTool } from './http-tool.ts';

/** The tools of a document, and each operation that became none. */
export interface Compiled {
  tools: HttpTool[];
  problems: Problem[];
  /** Operations of the document: each is a tool or left out. */
  operations: number;
  leftOut: { operation: string; why: string }[];
  /** The places of credentials, by the document's security schemes. */
  credentials: CredentialPlace[];
}

/** What becomes of a document that cannot be read at all. */
export function nothingOf(problems: Problem[]): Compiled {
  return { tools: [], problems, operations: 0, leftOut: [], credentials: [] };
}
