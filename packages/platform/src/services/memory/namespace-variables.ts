import { runInNewContext } from 'node:vm';
import { type control, errors } from '@agentplatform/contract';

/** A pattern of the memory's owner may be one that takes for ever on some text; matching is cut off after this. */
const MATCH_MS = 50;

/**
 * Checks `extractionConfig.namespaceVariables` against what the memory declares in `namespaceKeys`; throws a
 * ValidationException that names the variable.
 */
export function checkVariables(
  variables: Readonly<Record<string, string>>,
  keys: readonly control.NamespaceKeyEntry[],
): void {
  for (const [name, value] of Object.entries(variables)) {
    const field = `extractionConfig.namespaceVariables.${name}`;
    const declared = keys.find(({ key }) => key === name);
    if (!declared) {
      throw errors.invalidField(field, 'is not declared by this memory', {
        remedy: `Add ${name} to the memory's namespaceKeys.`,
      });
    }
    const { allowedValues, regexPattern } = declared.validation ?? {};
    if (allowedValues && !allowedValues.includes(value))
      throw errors.invalidField(field, 'is not one of the allowed values');
    if (regexPattern !== undefined && !matches(regexPattern, value)) {
      throw errors.invalidField(field, 'does not match the pattern that the memory demands');
    }
  }
}

function matches(pattern: string, value: string): boolean {
  try {
    return (
      runInNewContext("new RegExp('^(?:' + pattern + ')$').test(value)", { pattern, value }, { timeout: MATCH_MS }) ===
      true
    );
  } catch {
    return false;
  }
}
