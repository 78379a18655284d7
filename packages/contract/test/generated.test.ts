import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { generate } from '../src/generator/generate.ts';
import { pieceOf } from '../src/generator/pieces.ts';
import { type PublishedModel, stripModel } from '../src/generator/strip-model.ts';
import { operations } from '../src/index.ts';
import { contractModel } from '../src/model.ts';

const published = (shapes: PublishedModel['shapes']): PublishedModel => ({
  metadata: { apiVersion: '2026-01-01', serviceId: 'Test', endpointPrefix: 'test', protocol: 'rest-json' },
  operations: {
    Do: { name: 'Do', http: { method: 'POST', requestUri: '/do' }, input: { shape: 'In' }, output: { shape: 'In' } },
  },
  shapes,
});

describe('generated contract', () => {
  it('is what the generator makes of the stored model, byte for byte', () => {
    for (const [name, text] of Object.entries(generate(contractModel()))) {
      const file = readFileSync(new URL(`../src/generated/${name}`, import.meta.url), 'utf8');
      expect(file === text, `${name} is out of date: run npm run contract:update`).toBe(true);
    }
  });

  it('drops prose but not a member that is called documentation', () => {
    const { shapes } = stripModel(
      published({
        In: {
          type: 'structure',
          documentation: '<p>Prose</p>',
          members: { documentation: { shape: 'Text', documentation: 'x' } },
        },
        Text: { type: 'string', documentation: 'prose' },
      }),
    );
    expect(shapes).toEqual({
      In: { type: 'structure', members: { documentation: { shape: 'Text' } } },
      Text: { type: 'string' },
    });
    expect(JSON.stringify(contractModel())).not.toMatch(/<p>/);
  });

  it('refuses a trait that it does not know, instead of losing a rule', () => {
    const model = published({ In: { type: 'structure', members: {}, newRule: true } });
    expect(() => stripModel(model)).toThrow('In has the trait "newRule"');
  });

  it('takes some operations alone, with the shapes that these reach', () => {
    const whole = published({ In: { type: 'list', member: { shape: 'Text' } }, Text: { type: 'string' } });
    whole.shapes.Other = { type: 'structure', members: { in: { shape: 'In' } } };
    whole.operations.Other = { name: 'Other', http: { method: 'GET', requestUri: '/' }, input: { shape: 'Other' } };
    expect(Object.keys(stripModel(whole, ['Do']).operations)).toEqual(['Do']);
    expect(Object.keys(stripModel(whole, ['Do']).shapes)).toEqual(['In', 'Text']);
    expect(() => stripModel(whole, ['Gone'])).toThrow('Test has no operation Gone');
  });

  it('counts pieces over both planes of AgentCore', () => {
    const count = (piece: string): number => Object.values(operations).filter((o) => o.piece === piece).length;
    expect([count('runtimes'), count('code-interpreters'), count('memories')]).toEqual([15, 9, 21]);
    expect(pieceOf('/policy-engine-summaries/{id}')).toBe('policy-engines');
  });
});
