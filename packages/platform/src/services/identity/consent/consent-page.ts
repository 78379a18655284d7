/** What a person reads before he allows anything. Every text is shown as text. */
export interface ConsentView {
  /** Name of the workload identity that asks. */
  agent: string;
  /** Name of the provider, and the vendor as people call it. */
  provider: string;
  vendor: string;
  /** Whom the agent names as its user: an id, or the subject of his token. */
  user: string;
  scopes: readonly string[];
  resources: readonly string[];
  /** Host of the provider's page that is next. */
  providerHost: string;
  /** Host of the application that he comes back to; undefined when this platform ends it. */
  returnHost: string | undefined;
  /** Path that the form is sent to, and its hidden fields. */
  action: string;
  fields: Readonly<Record<string, string>>;
}

/** The page that asks. It has two buttons, `decision=allow` and `decision=deny`, needs no script and loads nothing. */
export function consentPage(view: ConsentView): string {
  const { agent, provider, vendor, user, scopes, resources, providerHost, returnHost, action, fields } = view;
  const list = (items: readonly string[]): string =>
    items.map((item) => `<li><code>${asText(item)}</code></li>`).join('');
  const hidden = Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${asText(name)}" value="${asText(value)}">`)
    .join('');
  return page(
    'Allow access?',
    `<h1>Allow access?</h1>
<p>The agent <strong>${asText(agent)}</strong> asks for access to <strong>${asText(vendor)}</strong> (${asText(provider)}) for <strong>${asText(user)}</strong>.</p>
${scopes.length > 0 ? `<p>It asks for:</p><ul>${list(scopes)}</ul>` : '<p>It names no scopes.</p>'}
${resources.length > 0 ? `<p>At:</p><ul>${list(resources)}</ul>` : ''}
<p>Next you log in at <strong>${asText(providerHost)}</strong>.${returnHost === undefined ? '' : ` After that you come back to <strong>${asText(returnHost)}</strong>.`}</p>
<p>Allow it only if you have just asked this agent for something.</p>
<form method="post" action="${asText(action)}">${hidden}
<button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form>`,
  );
}

/** A page that tells how it ended. */
export function messagePage(title: string, text: string): string {
  return page(title, `<h1>${asText(title)}</h1><p>${asText(text)}</p>`);
}

/** Headers of every page: no script, no frame, nothing of elsewhere, kept nowhere. A form may lead on to a provider, so its target is not held. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${asText(title)}</title></head>
<body>${body}</body></html>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function asText(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? letter);
}
