import { setting } from '../../config/setting.ts';
import { DEFAULT_PRICES, isUnit, nanoDollars, type Prices, units } from '../../kernel/metering/index.ts';

const lines = Object.entries(units).map(([name, { of }]) => `${name} (${of})`);

export const metering = {
  prices: setting<Prices>(
    'UNIT=DOLLARS[,UNIT=DOLLARS]',
    {
      about: `Prices in US dollars that differ from the usual ones, such as gateway-calls=0.01. Units: ${lines.join(', ')}.`,
      default: DEFAULT_PRICES,
      defaultText: 'those that the guide about metering lists',
    },
    readPrices,
  ),
};

/** Throws an Error whose message completes `metering.prices …`. */
export function readPrices(value: unknown): Prices {
  const pairs =
    typeof value === 'string'
      ? value.split(',').map((pair) => pair.split('=').map((part) => part.trim()))
      : Object.entries(typeof value === 'object' && value !== null ? value : {});
  if (pairs.length === 0) throw new Error('must be UNIT=DOLLARS pairs, or an object of them');
  const prices: Record<string, string> = { ...DEFAULT_PRICES };
  for (const [unit = '', dollars, ...more] of pairs) {
    if (!isUnit(unit))
      throw new Error(`must name units of ${Object.keys(units).join(', ')}, not ${JSON.stringify(unit)}`);
    const amount = typeof dollars === 'number' ? String(dollars) : dollars;
    if (typeof amount !== 'string' || more.length > 0) throw new Error(`must have one amount for ${unit}`);
    try {
      nanoDollars(amount);
    } catch {
      throw new Error(`must have dollars with at most nine decimals for ${unit}, such as 0.00945`);
    }
    prices[unit] = amount;
  }
  return prices as Prices;
}
