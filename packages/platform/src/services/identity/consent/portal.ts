import type { control } from '@agentplatform/contract';
import { list, object, stored, text, wire } from '../../../kernel/stored-shape.ts';

/** In the table `resources`. */
export const CONSENT_PORTAL_KIND = 'consent-portal';

/** What is kept of a portal beside its names. */
export interface PortalData {
  description?: string | undefined;
  /** Whose right to providers decides what the portal lists. */
  executionRoleArn: string;
  /** Where people sign in. */
  idpConfig: control.ConsentPortalIdpConfig;
  sources: control.ConsentPortalSource[];
}

export const storedPortal = stored<PortalData>(
  object(
    {
      executionRoleArn: text,
      idpConfig: wire<control.ConsentPortalIdpConfig>(),
      sources: list(wire<control.ConsentPortalSource>()),
    },
    { description: text },
  ),
);

/** A page on which people sign in and see what agents use for them. */
export interface ConsentPortal extends PortalData {
  arn: string;
  accountId: string;
  /** Unique everywhere; the last part of its address. */
  id: string;
  name: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}
