import { type control, errors, LinearPattern, UnsupportedPatternError } from '@agentplatform/contract';
import { Lru } from '../../kernel/lru.ts';

/** Steps of a pattern that somebody sends: `[a-z]{1,128}` has twice as many as characters, and a variable has 64 at most. */
const MOST_STEPS = 300;
/** Patterns that are kept with what they have learnt: events come again and again with variables of the same memories. */
const compiled = new Lru<string, LinearPattern>(64);

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
    if (regexPattern === undefined) continue;
    // Memories of earlier versions may hold one that cannot be matched.
    const pattern = storedPattern(regexPattern, field);
    if (!pattern.test(value)) throw errors.invalidField(field, 'does not match the pattern that the memory demands');
  }
}

/**
 * The pattern that a memory demands of a variable, matched in linear time: it is its owner's, who may mean ill, or not know that
 * some take for ever. Throws a ValidationException at `field` for what is none or cannot be matched so.
 */
export function variablePattern(source: string, field: string): LinearPattern {
  return explained(() => new LinearPattern(source, { maxSteps: MOST_STEPS }), field);
}

/** The pattern of a memory, compiled once. Those of earlier versions may be larger than one may be now. */
function storedPattern(source: string, field: string): LinearPattern {
  const known = compiled.get(source);
  if (known) return known;
  const why = 'cannot be checked, because the pattern that the memory demands ';
  const pattern = explained(() => new LinearPattern(source), field, why);
  compiled.set(source, pattern);
  return pattern;
}

function explained(compile: () => LinearPattern, field: string, before = ''): LinearPattern {
  try {
    return compile();
  } catch (cause) {
    if (cause instanceof UnsupportedPatternError) {
      throw errors.invalidField(field, `${before}${cause.message}`, {
        remedy: 'Write it without look-around, back references, word boundaries and great counts.',
        cause,
      });
    }
    throw errors.invalidField(field, `${before}is not a regular expression`, { cause });
  }
}
