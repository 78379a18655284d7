import { errors } from '@agentplatform/contract';
import {
  BUDGET_DIMENSIONS,
  BUDGET_PERIODS,
  type Budget,
  type GuardRails,
  NO_GUARD_RAILS,
  REDACTIONS,
} from './guard-rails.ts';

const MOST_BUDGETS = 1_000;
const LONGEST_CACHE = 86_400;
const LONGEST_NAME = 2_048;

/** What members of a body ask for; what they leave out is off. Throws ValidationException. */
export function readGuardRails(members: Readonly<Record<string, unknown>>): GuardRails {
  const {
    budgets = [],
    cacheSeconds = 0,
    log = false,
    redact = REDACTIONS,
    redactRequests = false,
    ...others
  } = members;
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw errors.invalidField(other, `is not known; there are ${Object.keys(NO_GUARD_RAILS).join(', ')}`);
  if (!Array.isArray(budgets) || budgets.length > MOST_BUDGETS)
    throw errors.invalidField('budgets', `must be a list of at most ${MOST_BUDGETS}`);
  if (!isWhole(cacheSeconds) || cacheSeconds > LONGEST_CACHE)
    throw errors.invalidField('cacheSeconds', `must be a whole number from 0 to ${LONGEST_CACHE}`);
  for (const [name, value] of Object.entries({ log, redactRequests }))
    if (typeof value !== 'boolean') throw errors.invalidField(name, 'must be true or false');
  if (!Array.isArray(redact) || !redact.every((one) => REDACTIONS.includes(one)))
    throw errors.invalidField('redact', `must be a list of ${REDACTIONS.join(', ')}`);
  const read = budgets.map(budgetIn);
  if (new Set(read.map(({ per, of, period }) => JSON.stringify([per, of, period]))).size < read.length)
    throw errors.invalidField('budgets', 'must have one for the same caller or key and period at most');
  return {
    ...{ budgets: read, cacheSeconds, log: log === true, redactRequests: redactRequests === true },
    redact: REDACTIONS.filter((one) => redact.includes(one)),
  };
}

function budgetIn(value: unknown, index: number): Budget {
  const at = `budgets[${index}]`;
  const { per, of = '*', tokens, period } = Object(value) as Record<string, unknown>;
  const dimension = BUDGET_DIMENSIONS.find((one) => one === per);
  const span = BUDGET_PERIODS.find((one) => one === period);
  if (!dimension) throw errors.invalidField(`${at}.per`, `must be ${BUDGET_DIMENSIONS.join(' or ')}`);
  if (!span) throw errors.invalidField(`${at}.period`, `must be ${BUDGET_PERIODS.join(' or ')}`);
  if (typeof of !== 'string' || of === '' || of.length > LONGEST_NAME)
    throw errors.invalidField(`${at}.of`, 'must name a caller or a key, or be *');
  if (!isWhole(tokens)) throw errors.invalidField(`${at}.tokens`, 'must be a whole number');
  return { per: dimension, of, tokens, period: span };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
