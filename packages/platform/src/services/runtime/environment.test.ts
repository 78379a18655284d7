import { describe, expect, it } from 'vitest';
import { environmentOf, environmentProblems } from './environment.ts';

const taken = (name: string): string | undefined => (name === 'PATH' ? 'is taken' : undefined);
const problems = (environmentVariables: Record<string, string>): string[] =>
  environmentProblems({ environmentVariables }, taken).map(({ name, message }) => `${name} ${message}`);

describe('environment variables of a runtime', () => {
  it('are plain, or get a secret, or open a service', () => {
    const environmentVariables = {
      A: 'b',
      KEY: 'secretref:TEAM_KEY',
      AGENTPLATFORM_ALLOW_EGRESS: 'localhost:11434',
    };
    expect(environmentOf({ environmentVariables })).toEqual({
      plain: { A: 'b', AGENTPLATFORM_ALLOW_EGRESS: 'localhost:11434' },
      secrets: { KEY: 'TEAM_KEY' },
      endpoints: [{ host: 'localhost', port: 11_434 }],
    });
    expect(environmentOf({})).toEqual({ plain: {}, secrets: {}, endpoints: [] });
    expect(problems(environmentVariables)).toEqual([]);
  });

  it('that get a secret have the name of one, and so has the secret', () => {
    expect(problems({ PATH: '/bin' })).toEqual([]);
    expect(problems({ PATH: 'secretref:KEY' })).toEqual(['environmentVariables.PATH is taken']);
    expect(problems({ KEY: 'secretref:PATH' })).toEqual([
      'environmentVariables.KEY refers to a secret whose name is taken',
    ]);
  });

  it('have names, and open nothing that is no service', () => {
    expect(problems({ 'A-B': 'c' })).toEqual([expect.stringContaining('environmentVariables.A-B must be letters')]);
    expect(problems({ AGENTPLATFORM_ALLOW_EGRESS: '10.0.0.0/8' })).toEqual([expect.stringContaining('HOST:PORT')]);
  });
});
