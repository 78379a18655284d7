import { describe, expect, it } from 'vitest';
import { errorCatalogue, isErrorCode } from './error-catalogue.ts';
import { contractModel } from './model.ts';

const modelled = Object.entries(contractModel().planes).flatMap(([plane, { shapes }]) =>
  Object.entries(shapes).filter(
    // A code has one meaning here, and AgentCore's own status for a quota is 402, where Bedrock Runtime says 400.
    ([code, shape]) => shape.exception && !(plane === 'models' && code === 'ServiceQuotaExceededException'),
  ),
);

describe('error catalogue', () => {
  it('has every error of the model, with its status and fault', () => {
    for (const [code, shape] of modelled) {
      expect(isErrorCode(code), code).toBe(true);
      if (!isErrorCode(code)) continue;
      const { origin, status, fault } = errorCatalogue[code];
      expect({ code, origin, status, fault }).toEqual({
        code,
        origin: 'model',
        status: shape.error?.httpStatusCode,
        fault: shape.fault ? 'server' : 'client',
      });
    }
  });

  it('calls nothing modelled that the model lacks', () => {
    const codes = new Set(modelled.map(([code]) => code));
    const claimed = Object.entries(errorCatalogue).filter(([, kind]) => kind.origin === 'model');
    expect(claimed.map(([code]) => code).filter((code) => !codes.has(code))).toEqual([]);
  });

  it('does not take inherited names for codes', () => {
    expect(isErrorCode('constructor')).toBe(false);
    expect(isErrorCode('__proto__')).toBe(false);
  });
});
