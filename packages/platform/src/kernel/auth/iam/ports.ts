/** Encrypts what must not lie readable in the database; implemented by the platform's secrets. */
export interface Sealer {
  /** `context` is bound to the result: opening needs the same. */
  seal(plain: string, context: string): Promise<string>;
  /** Throws when the text was altered or the context is another. */
  open(sealed: string, context: string): Promise<string>;
}

/** So many bytes that nobody can guess. */
export type RandomBytes = (count: number) => Buffer;
