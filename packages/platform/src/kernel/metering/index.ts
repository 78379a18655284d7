export { counted, createMeter, METERED, type Meter } from './meter.ts';
export { addMetered, forgetMetered, type Metered, meteringMigrations, storedMetered } from './metered.ts';
export { dollarsOf, nanoDollars, priceOf } from './price.ts';
export { type Billed, billUpTo, dayOf } from './session-seconds.ts';
export { DEFAULT_PRICES, isUnit, type Prices, type Unit, units } from './units.ts';
