export { type HttpInput, PolicyGate, toolDenied } from './policy-gate.ts';
export { policyGateways } from './policy-view.ts';
