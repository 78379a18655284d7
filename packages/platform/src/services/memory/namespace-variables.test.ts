import { ServiceError } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import { checkVariables, variablePattern } from './namespace-variables.ts';

function problem(work: () => unknown): ServiceError | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

const check = (regexPattern: string, value: string) =>
  problem(() => checkVariables({ team: value }, [{ key: 'team', validation: { regexPattern } }]));

describe('variables of namespaces', () => {
  it('match the pattern of their memory as a whole', () => {
    expect(check('red|blue-[0-9]{1,3}', 'blue-12')).toBeUndefined();
    expect(check('red|blue-[0-9]{1,3}', 'xred')?.wireMessage).toContain('does not match the pattern');
    expect(check('red|blue-[0-9]{1,3}', 'blue-1234')?.code).toBe('ValidationException');
  });

  it('are judged rightly where RegExp goes back for years', () => {
    // 2^60 ways through it: nothing that tries them one by one ends, so an answer at all shows that none does.
    expect(check('(a|a|[a-z])*!', 'a'.repeat(60))?.wireMessage).toContain('does not match the pattern');
    expect(check('([a-z]+)*', 'a'.repeat(60))).toBeUndefined();
  });

  it('cannot be checked by a pattern that an earlier version took, and it is said', () => {
    const error = check('(?=a)a', 'a');
    expect(error?.code).toBe('ValidationException');
    expect(error?.wireMessage).toContain('extractionConfig.namespaceVariables.team cannot be checked');
    expect(error?.wireMessage).toContain('looks ahead');
  });

  it.each(['[a-z0-9-]{1,64}', '[a-z0-9][a-z0-9_-]{0,127}', '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'])(
    'may have the pattern %s',
    (source) => expect(problem(() => variablePattern(source, 'x'))).toBeUndefined(),
  );

  it('may be compared with a larger pattern of an earlier version', () => {
    const source = 'once-([a-z]|[0-9]){200}';
    for (let event = 0; event < 5; event += 1) expect(check(source, `once-${'a'.repeat(200)}`)).toBeUndefined();
    expect(check(source, 'once-')?.wireMessage).toContain('does not match the pattern');
  });

  it.each([
    ['(a)\\1', 'refers back to a group'],
    ['a{99999}', 'too large'],
    // What the model’s own patterns may have is too much for one that comes with every event.
    ['([a-z]|[0-9]){200}', 'too large'],
    ['(a', 'is not a regular expression'],
  ])('have no pattern %s', (source, why) => {
    const error = problem(() => variablePattern(source, 'namespaceKeys[0].validation.regexPattern'));
    expect(error?.code).toBe('ValidationException');
    expect(error?.wireMessage).toContain(why);
    expect(error?.members.fieldList).toMatchObject([{ name: 'namespaceKeys[0].validation.regexPattern' }]);
  });
});
