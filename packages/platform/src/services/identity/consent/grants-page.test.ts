import { expect, it } from 'vitest';
import { grantsPage } from './grants-page.ts';

const view = { user: 'ada', grants: [], notice: undefined, action: '/grants', fields: {} };

it('the page of grants says where it does not show all', () => {
  expect(grantsPage({ ...view, more: true })).toContain('Older ones are shown once');
  expect(grantsPage({ ...view, more: false })).not.toContain('Older ones');
});
