/** The value below which the share `p` (0 to 1) of `values` lies; NaN for none. */
export function percentile(values: readonly number[], p: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

/** Rounded to so many digits behind the point, for results that are written down. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
