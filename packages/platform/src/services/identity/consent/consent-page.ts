import type { control } from '@agentplatform/contract';
import { type Html, html, page } from './page.ts';
import { hiddenFields } from './page-form.ts';
import { scopeWords } from './scopes.ts';

/** What a person reads before he allows anything. Every text is shown as text. */
export interface ConsentView {
  /** Name of the workload identity that asks. */
  agent: string;
  /** The vendor, and what people call the provider. */
  vendor: control.CredentialProviderVendorType;
  title: string;
  /** Whom the agent names as its user: an id, or the subject of his token. */
  user: string;
  scopes: readonly string[];
  resources: readonly string[];
  /** For whom the tokens are to be, as the agent says. */
  audiences: readonly string[];
  /** What the agent has the provider told beside the rest. */
  parameters: Readonly<Record<string, string>>;
  /** Host of the provider's page that is next. */
  providerHost: string;
  /** Host of the application that he comes back to; undefined when this platform ends it. */
  returnHost: string | undefined;
  /** Path that the form is sent to, and its hidden fields. */
  action: string;
  fields: Readonly<Record<string, string>>;
}

/** The page that asks. It has two buttons, `decision=allow` and `decision=deny`. */
export function consentPage(view: ConsentView): string {
  const {
    agent,
    vendor,
    title,
    user,
    scopes,
    resources,
    audiences,
    parameters,
    providerHost,
    returnHost,
    action,
    fields,
  } = view;
  const back =
    returnHost === undefined ? undefined : html` After that you come back to <strong>${returnHost}</strong>.`;
  return page(
    'Allow access?',
    html`<p>An agent asks to act for you at <strong>${providerHost}</strong>.</p>
<dl>
<dt>Agent</dt><dd>${agent}</dd>
<dt>On behalf of</dt><dd>${user}</dd>
<dt>Provider</dt><dd>${title}</dd>
</dl>
<h2>${scopes.length > 0 ? 'It could then' : 'It names no scopes: the provider decides what it may.'}</h2>
${scopeList(vendor, scopes)}
${list(
  'At',
  resources.map((one) => html`<li>${one}</li>`),
)}
${list(
  'Tokens are for',
  audiences.map((one) => html`<li>${one}</li>`),
)}
${list(
  'The agent also tells the provider',
  Object.entries(parameters).map(([name, value]) => html`<li>${name}<code>${value}</code></li>`),
)}
<p class="soft">Next you log in at <strong>${providerHost}</strong>.${back}</p>
<p class="soft">Allow it only if you are ${user} and have just asked this agent for something.</p>
<form method="post" action="${action}">${hiddenFields(fields)}
<button name="decision" value="deny">Deny</button>
<button name="decision" value="allow" class="main">Allow</button></form>`,
  );
}

function list(title: string, items: readonly Html[]): Html | undefined {
  return items.length > 0 ? html`<h2>${title}</h2><ul>${items}</ul>` : undefined;
}

/** A list of scopes in plain words. An unknown scope appears under its own name. */
export function scopeList(vendor: control.CredentialProviderVendorType, scopes: readonly string[]): Html | undefined {
  if (scopes.length === 0) return undefined;
  const items = scopes.map((scope) => {
    const words = scopeWords(vendor, scope);
    return words === undefined ? html`<li>Use “${scope}”</li>` : html`<li>${words}<code>${scope}</code></li>`;
  });
  return html`<ul>${items}</ul>`;
}
