import { type Prices, type Unit, units } from './units.ts';

const NANO = 9;
const WRITTEN = /^(\d{1,9})(?:\.(\d{1,9}))?$/;

/** US dollars as a decimal text in nano-dollars. Throws RangeError for what is no such text. */
export function nanoDollars(dollars: string): bigint {
  const [, whole, fraction = ''] = WRITTEN.exec(dollars) ?? [];
  if (whole === undefined) throw new RangeError(`"${dollars}" is no amount: write dollars with at most nine decimals`);
  return BigInt(whole + fraction.padEnd(NANO, '0'));
}

/** What so many of a unit cost in nano-dollars: priced once, rounded to the nearest, half of one up. */
export function priceOf(unit: Unit, quantity: bigint, prices: Prices): bigint {
  const per = BigInt(units[unit].per);
  return (2n * quantity * nanoDollars(prices[unit]) + per) / (2n * per);
}

/** Nano-dollars as a decimal text in dollars, with all nine decimals. */
export function dollarsOf(nano: bigint): string {
  const digits = nano.toString().padStart(NANO + 1, '0');
  return `${digits.slice(0, -NANO)}.${digits.slice(-NANO)}`;
}
