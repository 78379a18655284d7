/** Of 95 % for the normal distribution. */
const Z = 1.96;

/** A share in percent with its 95 % interval by Wilson's score, such as `84 % (76–90)`. */
export function shareInterval(count: number, total: number): string {
  if (total === 0) return 'none';
  const share = count / total;
  const spread = Z * Math.sqrt((share * (1 - share)) / total + Z ** 2 / (4 * total ** 2));
  const [low, high] = [-spread, spread].map((side) => (share + Z ** 2 / (2 * total) + side) / (1 + Z ** 2 / total));
  const percent = (value = 0): string => Math.max(0, value * 100).toFixed(0);
  return `${percent(share)} % (${percent(low)}–${percent(high)})`;
}

/** The half width of the 95 % interval of a mean. */
export function meanInterval(values: readonly number[]): number {
  const mean = meanOf(values);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1);
  return Z * Math.sqrt(variance / Math.max(1, values.length));
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
