import { PolicyGate } from '../policy-gate.ts';

/** For gateways to which no engine is attached. */
export function noPolicies(): PolicyGate {
  const asked = (): never => {
    throw new Error('policies were asked at a gateway without an engine');
  };
  return new PolicyGate({ policy: { decide: asked, permitted: asked }, callers: { sessionOf: asked, carried: asked } });
}
