import vm from 'node:vm';

/** Why a text is no script, and where (from 1) if that is known. */
export interface ScriptFault {
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

/** What keeps `code` from being a script; undefined if it is one. V8 answers fast; acorn is asked where it fails. */
export async function scriptFault(code: string): Promise<ScriptFault | undefined> {
  try {
    new vm.Script(code);
    return undefined;
  } catch (error) {
    return { message: error instanceof Error ? error.message : String(error), ...(await errorPosition(code)) };
  }
}

async function errorPosition(code: string): Promise<{ line?: number; column?: number }> {
  // Loaded only when there is an error to point at.
  const { parse } = await import('acorn');
  try {
    parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowHashBang: false });
  } catch (error) {
    if (error instanceof Error && 'loc' in error) {
      const { line, column } = error.loc as { line: number; column: number };
      return { line, column: column + 1 };
    }
  }
  return {};
}
