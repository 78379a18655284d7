export { AnswerCache, cacheKey } from './answer-cache.ts';
export { Budgets } from './budgets.ts';
export { guardRailRoutes } from './guard-rail-routes.ts';
export { GuardRailStore } from './guard-rail-store.ts';
export { GUARD_RAILS_KIND, type GuardRails, NO_GUARD_RAILS } from './guard-rails.ts';
export { guardedModel } from './guarded-model.ts';
