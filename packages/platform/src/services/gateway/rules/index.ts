export { CircuitBreaker } from './circuit-breaker.ts';
export { FallbackChain } from './fallback-chain.ts';
export { type Chosen, type Route, Routing, type Ruled } from './routing.ts';
export { RULE_KIND, type Rule } from './rule.ts';
export { RULE_FIELDS } from './rule-fields.ts';
export { RULE_OPERATIONS, ruleOperations } from './rule-operations.ts';
export { Rules } from './rules.ts';
export { checkStickiness } from './stickiness.ts';
export { StickySessions } from './sticky-sessions.ts';
