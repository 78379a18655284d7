export { PolicyCallers } from './policy-callers.ts';
export { type HttpInput, PolicyGate, toolDenied } from './policy-gate.ts';
export { policyGateways } from './policy-view.ts';
