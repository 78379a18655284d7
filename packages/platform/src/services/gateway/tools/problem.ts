/** What is wrong with a document, for its author. An error costs an operation, or all of them; a warning costs none. */
export interface Problem {
  severity: 'error' | 'warning';
  message: string;
  /** A JSON pointer into the document, or the name of an operation. */
  where?: string;
  /** Line of the document, from 1. */
  line?: number;
}
