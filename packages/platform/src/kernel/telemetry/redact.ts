/** Stands where a secret was. */
export const redacted = '[redacted]';

const maxDepth = 8;
const maxEntries = 200;
const maxText = 65_536;

// A key is compared without case and punctuation, so that X-Amz-Security-Token, securityToken and security_token are one.
const secretKey =
  /(authorization|cookie|passw(or)?d|passphrase|secret|secretkey|token|apikey|accesskey|privatekey|encryptionkey|signature|credentials?|assertion|identitywat|codeverifier|databaseurl)$/;
const secretBeginning = /^(authorization|cookie|setcookie|password|clientsecret|apikey)/;
// These end like secrets and are none: references, counts and kinds.
const harmlessEnd =
  /(arn|id|ids|name|type|vendor|provider|location|endpoint|file|count|expiry|expires(at|in)?|present)$/;

const isSecretKey = (key: string): boolean => {
  const plain = key.toLowerCase().replace(/[^a-z0-9]/g, '');
  return secretKey.test(plain) || (secretBeginning.test(plain) && !harmlessEnd.test(plain));
};

/** Secrets that stand inside of text: what comes before them is kept, what they are is not. */
const inText: [RegExp, string][] = [
  // Authorization values, wherever they are quoted.
  [/\b(bearer|basic|negotiate|dpop)(\s+|%20)[\w.~+/%-]{6,}=*/gi, `$1 ${redacted}`],
  [/(AWS4-HMAC-SHA256[^\n"]{0,1024}?Signature=)[0-9a-f]+/gi, `$1${redacted}`],
  // Query parameters and form fields: presigned URLs, OAuth codes and tokens.
  [
    /([?&;\s"']|^|%26|\\u0026)((?:x-amz-(?:signature|security-token|credential)|access_token|refresh_token|id_token|client_secret|client_assertion|subject_token|api[_-]?key|apikey|password|passwd|secret|token|code|code_verifier|signature|sig|key)(?:=|%3D))[^&\s"'<>\\]+/gi,
    `$1$2${redacted}`,
  ],
  // "password": "…" in a quoted body, also when the quotes are escaped.
  [
    /(\\{0,8}["'](?:[\w-]{0,64}(?:password|passwd|secret|token|api_?key|secretAccessKey|authorization|private_?key))\\{0,8}["']\s{0,8}:\s{0,8}\\{0,8}["'])[^"'\\]+/gi,
    `$1${redacted}`,
  ],
  // user:password@host
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"']{0,256}:)[^\s@"']{1,1024}(?=@)/gi, `$1${redacted}`],
  // Shapes that say what they are: signed tokens, private keys.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{1,65536}(\.[\w-]*)*/g, redacted],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, redacted],
  // The spaces are taken whole (`(?=(…))\3`): given back one by one, each would be looked at from every other.
  [
    /(x-amz-security-token|set-cookie|cookie|authorization|x-api-key)(["']?\s*:(?=(\s*))\3["']?)(?!\[redacted\])[^\s"',;]+/gi,
    `$1$2${redacted}`,
  ],
];

/** `text` without the secrets that can be told by their place or their shape. */
export function redactText(text: string): string {
  // Every pattern needs one of these; identifiers have none.
  if (!/[\s%=:]|eyJ/.test(text)) return text.length > maxText ? cut(text) : text;
  let clean = cut(text);
  for (const [pattern, replacement] of inText) clean = clean.replace(pattern, replacement);
  return clean;
}

const cut = (text: string): string =>
  text.length > maxText ? `${text.slice(0, maxText)}… ${text.length - maxText} more characters` : text;

/**
 * A copy of `value` that is fit to be written down: values under secret keys replaced, text searched, errors made plain
 * objects with their causes, cycles and great depth cut off. Numbers and booleans stay: a count of tokens is no token.
 */
export function redact(value: unknown): unknown {
  return copy(value, 0, new Set());
}

function copy(value: unknown, depth: number, above: Set<object>): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value === 'function') return '[function]';
  if (typeof value !== 'object' || value === null) return value;
  if (above.has(value)) return '[circular]';
  if (depth >= maxDepth) return '[deep]';
  above.add(value);
  try {
    return copyObject(value, depth + 1, above);
  } catch {
    // A getter or a proxy that throws; a log line is no reason to fail.
    return '[unreadable]';
  } finally {
    above.delete(value);
  }
}

function copyObject(value: object, depth: number, above: Set<object>): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof URL || value instanceof RegExp) return redactText(String(value));
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return copyList(value, depth, above);
  if (value instanceof Map)
    return copyEntries(
      [...value].map(([key, one]) => [String(key), one]),
      depth,
      above,
    );
  if (value instanceof Set) return copyList([...value], depth, above);
  // Headers, URLSearchParams and their kin have no own properties.
  if (value instanceof Headers || value instanceof URLSearchParams) return copyEntries([...value], depth, above);
  const entries = Object.entries(value);
  if (!(value instanceof Error)) return copyEntries(entries, depth, above);
  const { name, message, stack, cause } = value;
  const hidden: [string, unknown][] = [
    ['type', name],
    ['message', message],
    ['stack', stack],
  ];
  if (cause !== undefined) hidden.push(['cause', cause]);
  if (value instanceof AggregateError) hidden.push(['errors', value.errors]);
  return copyEntries([...hidden, ...entries], depth, above);
}

function copyList(list: readonly unknown[], depth: number, above: Set<object>): unknown[] {
  // Raw headers come as [name, value, name, value …] or pairs; a name in front of a value guards it like a key.
  const shown = list.slice(0, maxEntries);
  const copied = shown.map((one, index) => {
    const before = index > 0 ? shown[index - 1] : undefined;
    return typeof before === 'string' && typeof one === 'string' && isSecretKey(before)
      ? redacted
      : copy(one, depth, above);
  });
  return list.length > maxEntries ? [...copied, `[${list.length - maxEntries} more]`] : copied;
}

function copyEntries(
  entries: readonly (readonly [string, unknown])[],
  depth: number,
  above: Set<object>,
): Record<string, unknown> {
  const clean: Record<string, unknown> = Object.create(null);
  for (const [key, value] of entries.slice(0, maxEntries)) {
    const harmless =
      value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean' || value === '';
    clean[key] = !harmless && isSecretKey(key) ? redacted : copy(value, depth, above);
  }
  if (entries.length > maxEntries) clean['…'] = `${entries.length - maxEntries} more`;
  return clean;
}
