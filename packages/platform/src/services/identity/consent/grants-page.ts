import type { control } from '@agentplatform/contract';
import type { AtProvider } from '../flows/grants.ts';
import { scopeList } from './consent-page.ts';
import { type Html, html, page } from './page.ts';
import { hiddenFields } from './page-form.ts';

/** A grant as its owner sees it. */
export interface ShownGrant {
  /** Names it in the form. */
  id: string;
  agent: string;
  providerArn: string;
  /** What people call the provider. */
  title: string;
  vendor: control.CredentialProviderVendorType;
  scopes: readonly string[];
  /** Milliseconds since the epoch. */
  grantedAt: number;
}

export interface GrantsView {
  /** Whose they are. */
  user: string;
  grants: readonly ShownGrant[];
  /** Whether there are older ones than these. */
  more: boolean;
  /** What was just done. */
  notice: string | undefined;
  /** Path that the forms are sent to, and their hidden fields. */
  action: string;
  fields: Readonly<Record<string, string>>;
}

/** What a person has granted. Each grant has a button, `revoke=ID`. */
export function grantsPage({ user, more, notice, ...rest }: GrantsView): string {
  return page(
    'Your agents’ access',
    html`${notice === undefined ? undefined : html`<p role="status"><strong>${notice}</strong></p>`}
<p>This is what <strong>${user}</strong> has allowed agents to use.</p>
${grantList(rest)}${more ? olderGrants : undefined}`,
  );
}

/** Said where a page does not show all. */
export const olderGrants: Html = html`<p>These are the newest. Older ones are shown once you take some of these back.</p>`;

/** Grants with their buttons, or that there are none. */
export function grantList({ grants, action, fields }: Pick<GrantsView, 'grants' | 'action' | 'fields'>): Html {
  if (grants.length === 0) return html`<p>There is nothing.</p>`;
  return html`<ul>${grants.map((grant) => item(grant, action, fields))}</ul>`;
}

function item(
  { id, agent, title, vendor, scopes, grantedAt }: ShownGrant,
  action: string,
  fields: GrantsView['fields'],
): Html {
  return html`<li><strong>${agent}</strong> uses <strong>${title}</strong>
<small>allowed on ${new Date(grantedAt).toISOString().slice(0, 10)}</small>
${scopeList(vendor, scopes)}
<form method="post" action="${action}">${hiddenFields(fields)}<button name="revoke" value="${id}">Take back</button></form></li>
`;
}

/** What a person is told of a grant that he took back. */
export function revokedNotice({ agent, title }: Pick<ShownGrant, 'agent' | 'title'>, atProvider: AtProvider): string {
  const here = `${agent} gets no access to ${title} any more.`;
  if (atProvider === 'revoked') return `${here} ${title} was told.`;
  const why = atProvider === 'failed' ? 'could not be told' : 'offers no way to be told';
  return `${here} ${title} ${why}: what the agent has already got may count until it ends. You can end it in your settings there.`;
}
