/** What a document may cost. Bytes are counted as UTF-16 code units where text is in memory. */
export interface CompileLimits {
  /** Limit of one file, and of all files together. */
  documentBytes: number;
  /** Files that a document may consist of. */
  files: number;
  /** Nesting of values in a file. */
  depth: number;
  /** Values in a file, those of YAML aliases counted each time that they are used; also what the conversion of its schemas may look at. */
  nodes: number;
  operations: number;
  /** Limit of one tool's input schema. An operation with a larger one is left out. */
  inputSchemaBytes: number;
  /** Limit of one tool's output schema. A larger one is left out. */
  outputSchemaBytes: number;
  /** Limit of all tools together. The tools beyond it are left out. */
  toolsBytes: number;
  /** Characters of one description. */
  description: number;
}

export const COMPILE_LIMITS: CompileLimits = {
  documentBytes: 32 * 1024 * 1024,
  files: 50,
  depth: 150,
  nodes: 4_000_000,
  operations: 5_000,
  inputSchemaBytes: 1024 * 1024,
  outputSchemaBytes: 32 * 1024,
  toolsBytes: 64 * 1024 * 1024,
  description: 4_000,
};
