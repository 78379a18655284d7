/** One parameter of a query, as it was written, with its name as it is meant. */
interface Parameter {
  name: string;
  written: string;
}

/** Parameters of a signature: a holder of them could send the request again. */
const OF_SIGNATURE = /^x-amz-/i;

/** The parameters of a request line's query, each as it was written. Those of a signature are none. */
export function parametersOf(url: string): Parameter[] {
  const asked = url.indexOf('?');
  if (asked < 0) return [];
  return url
    .slice(asked + 1)
    .split('&')
    .filter((written) => written !== '')
    .map((written) => ({ name: new URLSearchParams(written).keys().next().value ?? '', written }))
    .filter(({ name }) => !OF_SIGNATURE.test(name));
}

/** Such a parameter. */
export function parameter(name: string, value: string): Parameter {
  return { name, written: `${encodeURIComponent(name)}=${encodeURIComponent(value)}` };
}

/** What stands behind the path: empty, or from its question mark on. */
export function searchOf(parameters: readonly Parameter[]): string {
  return parameters.length === 0 ? '' : `?${parameters.map(({ written }) => written).join('&')}`;
}
