import type { GuardrailCheck, GuardrailProvider, Scores } from './guardrails.ts';

/** What patterns and checksums can see, by the original's names; each gives whether a text has it. */
const PATTERNS: Readonly<Record<string, (text: string) => boolean>> = {
  EMAIL: (text) => /[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}/.test(text),
  PHONE: (text) =>
    /(?<![\w.])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,4}\)[ .-]?)?\d{2,4}[ .-]\d{3,4}[ .-]?\d{3,4}(?![\w.])/.test(text),
  CREDIT_DEBIT_CARD_NUMBER: (text) => numbers(text, 13, 19).some(passesLuhn),
  CREDIT_DEBIT_CARD_CVV: (text) => /\b(?:cvv|cvc|cvv2|security code)\b\D{0,10}\d{3,4}\b/i.test(text),
  CREDIT_DEBIT_CARD_EXPIRY: (text) =>
    /\b(?:exp(?:iry|ires|iration)?)\b\D{0,12}(?:0[1-9]|1[0-2])\s?[/-]\s?(?:20)?\d{2}\b/i.test(text),
  US_SOCIAL_SECURITY_NUMBER: (text) =>
    [...text.matchAll(/(?<!\d)(\d{3})[- ]?(\d{2})[- ]?(\d{4})(?!\d)/g)].some(
      ([, area = '', group, serial]) => !/^(?:000|666|9\d\d)$/.test(area) && group !== '00' && serial !== '0000',
    ),
  US_INDIVIDUAL_TAX_IDENTIFICATION_NUMBER: (text) =>
    /(?<!\d)9\d{2}[- ]?(?:5\d|6[0-5]|7\d|8[0-8]|9[0-2]|9[4-9])[- ]?\d{4}(?!\d)/.test(text),
  US_BANK_ROUTING_NUMBER: (text) => numbers(text, 9, 9).some(passesAba),
  INTERNATIONAL_BANK_ACCOUNT_NUMBER: (text) =>
    [...text.matchAll(/(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])/g)].some(([iban]) =>
      passesMod97(iban),
    ),
  IP_ADDRESS: (text) =>
    [...text.matchAll(/(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])/g)].some(([ip]) =>
      ip.split('.').every((part) => Number(part) < 256),
    ) || /(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}:?[0-9a-f]{1,4}(?![\w:])/i.test(text),
  MAC_ADDRESS: (text) => /(?<![\w:-])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])/i.test(text),
  AWS_ACCESS_KEY: (text) => /(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])/.test(text),
  AWS_SECRET_KEY: (text) =>
    /\b(?:aws_?)?secret(?:_?access)?_?key\b\W{1,10}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/i.test(text),
  PASSWORD: (text) => /\b(?:password|passwd|pwd)\b\s{0,4}(?:is|[:=])\s{0,4}\S{4,}/i.test(text),
};

/** The kinds of sensitive data that it can see. */
export const BUILT_IN_CATEGORIES = Object.keys(PATTERNS);

/**
 * Sees sensitive data by patterns and checksums, without a model. A score is 1 or 0. What needs understanding (names, addresses, attacks on prompts,
 * violence) it does not see, and says so by rejecting.
 */
export const builtInGuardrails: GuardrailProvider = {
  async score({ type, categories, texts }: GuardrailCheck): Promise<Scores> {
    if (type !== 'SensitiveInformation')
      throw new Error(`the built-in guardrail sees no ${type}: set policy.guardrails to a service that does`);
    return Object.fromEntries(categories.map((category) => [category, scoreOf(category, texts)]));
  },
};

function scoreOf(category: string, texts: readonly string[]): number {
  const has = Object.hasOwn(PATTERNS, category) ? PATTERNS[category] : undefined;
  if (!has) throw new Error(`the built-in guardrail cannot see ${category}; it sees ${BUILT_IN_CATEGORIES.join(', ')}`);
  return texts.some((text) => has(plain(text))) ? 1 : 0;
}

/** The text with digits and letters of other widths as plain ones, and without invisible characters. */
function plain(text: string): string {
  return text.normalize('NFKC').replace(/\p{Cf}/gu, '');
}

/** Runs of so many digits, which may have single blanks or dashes between them. */
function numbers(text: string, least: number, most: number): string[] {
  return [...text.matchAll(/(?<!\d)\d(?:[ -]?\d)*(?!\d)/g)]
    .map(([run]) => run.replace(/\D/g, ''))
    .filter(({ length }) => length >= least && length <= most);
}

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]) * (i % 2 === 1 ? 2 : 1);
    sum += digit > 9 ? digit - 9 : digit;
  }
  return sum % 10 === 0 && !/^0+$/.test(digits);
}

function passesAba(digits: string): boolean {
  const weights = [3, 7, 1, 3, 7, 1, 3, 7, 1];
  return digits !== '000000000' && weights.reduce((sum, weight, i) => sum + weight * Number(digits[i]), 0) % 10 === 0;
}

function passesMod97(iban: string): boolean {
  const compact = iban.replace(/ /g, '');
  if (compact.length < 15 || compact.length > 34) return false;
  const turned = compact.slice(4) + compact.slice(0, 4);
  let rest = 0;
  for (const letter of turned) rest = Number(`${rest}${Number.parseInt(letter, 36)}`) % 97;
  return rest === 1;
}
