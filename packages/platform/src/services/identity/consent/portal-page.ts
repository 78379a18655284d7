import { grantList, olderGrants, type ShownGrant } from './grants-page.ts';
import { type Html, html, page } from './page.ts';
import { hiddenFields } from './page-form.ts';

/** A provider that a portal lists, and what the person has granted agents there. */
export interface Connection {
  /** What people call the provider. */
  title: string;
  grants: readonly ShownGrant[];
}

export interface ConnectionsView {
  /** Name of the portal, and what its maker says of it. */
  portal: string;
  description: string | undefined;
  /** Who has signed in: his subject at the provider that he signs in by. */
  user: string;
  connections: readonly Connection[];
  /** Whether there are older grants than these. */
  more: boolean;
  /** What was just done. */
  notice: string | undefined;
  /** Path that the forms are sent to, and their hidden fields. */
  action: string;
  fields: Readonly<Record<string, string>>;
}

/** What agents use for the person who has signed in. Buttons: `revoke=ID` for each grant, and `signOut`. */
export function connectionsPage(view: ConnectionsView): string {
  const { portal, description, user, connections, more, notice, action, fields } = view;
  const shown = connections.map((connection) => section(connection, action, fields));
  return page(
    'Connections',
    html`<p class="soft">${portal}${description === undefined ? undefined : html`: ${description}`}</p>
${notice === undefined ? undefined : html`<p role="status"><strong>${notice}</strong></p>`}
<p>You are signed in as <strong>${user}</strong>.</p>
${shown.length > 0 ? shown : html`<p>There is nothing to connect.</p>`}
${more ? olderGrants : undefined}
<form method="post" action="${action}">${hiddenFields(fields)}<button name="signOut" value="yes">Sign out</button></form>`,
  );
}

function section({ title, grants }: Connection, action: string, fields: ConnectionsView['fields']): Html {
  const inside =
    grants.length > 0
      ? grantList({ grants, action, fields })
      : html`<p class="soft">Not connected. An agent that needs it asks you.</p>`;
  return html`<h2>${title}</h2>
${inside}
`;
}

/** What somebody sees who has not signed in. */
export function signInPage(portal: string, { title, href }: { title: string; href: string }): string {
  return page(
    'Sign in',
    html`<p><strong>${portal}</strong> shows you what agents use for you, and lets you take it back.</p>
<p><a href="${href}">Sign in with ${title}</a></p>`,
  );
}
