export { type HttpInput, type Passage, PolicyGate, toolDenied } from './policy-gate.ts';
export { policyGateways } from './policy-view.ts';
