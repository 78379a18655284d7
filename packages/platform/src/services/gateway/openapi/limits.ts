/** What a document may cost. Bytes are counted as UTF-16 code units where text is in memory. */
export interface CompileLimits {
  /** Of one file, and of all files together. */
  documentBytes: number;
  /** Files that a document may consist of. */
  files: number;
  /** Nesting of values in a file. */
  depth: number;
  /** Values in a file, those of YAML aliases counted each time that they are used; also what the conversion of its schemas may look at. */
  nodes: number;
  operations: number;
  /** Of one tool's input schema; a larger one leaves out its operation. */
  inputSchemaBytes: number;
  /** Of one tool's output schema; a larger one is left out. */
  outputSchemaBytes: number;
  /** Of all tools together; what comes behind is left out. */
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
