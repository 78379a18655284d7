import { describe, expect, it } from 'vitest';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import { checkCustomParameters } from './custom-parameters.ts';

type Vendor = keyof typeof VENDORS;
const check =
  (vendor: Vendor, customParameters: Record<string, string>, audiences: string[] = []) =>
  () =>
    checkCustomParameters({ provider: { data: { vendor } } as Oauth2Provider, audiences, customParameters });
const refusal = (field: string) =>
  expect.objectContaining({ code: 'ValidationException', message: expect.stringContaining(field) });

describe('parameters of a caller', () => {
  it.each([
    ...['response_type', 'response_mode', 'client_id', 'redirect_uri', 'state', 'scope', 'code_challenge'],
    ...['code_challenge_method', 'request', 'request_uri', 'grant_type', 'client_secret', 'client_assertion'],
    ...['client_assertion_type', 'code', 'code_verifier', 'refresh_token', 'assertion', 'subject_token', 'actor_token'],
    ...['actor_token_type', 'Redirect_URI', 'redirect.uri', 'redirect-uri', 'STATE'],
  ])('do not say %s, which the platform says', (name) => {
    expect(check('CustomOauth2', { login_hint: 'ada', [name]: 'mine' })).toThrow(refusal(`customParameters.${name}`));
  });

  it.each(
    Object.entries(VENDORS).flatMap(([vendor, { authorizationParameters, onBehalfOfParameters }]) =>
      Object.entries({ ...authorizationParameters, ...onBehalfOfParameters }).map(
        ([name, value]): [Vendor, string, string] => [vendor as Vendor, name, value],
      ),
    ),
  )('say at %s no other %s than %s', (vendor, name, value) => {
    expect(check(vendor, { [name]: 'another' })).toThrow(refusal(`customParameters.${name}`));
    expect(check(vendor, { [name.toUpperCase()]: value })).toThrow(refusal(name.toUpperCase()));
    expect(check(vendor, { [name]: value })).not.toThrow();
    expect(check('CustomOauth2', { [name]: 'another' })).not.toThrow();
  });

  it('name no other audience where the vendor has one', () => {
    expect(check('AtlassianOauth2', {}, ['urn:mine'])).toThrow(refusal('audiences'));
    expect(check('AtlassianOauth2', {}, ['api.atlassian.com'])).not.toThrow();
    expect(check('Auth0Oauth2', {}, ['urn:mine'])).not.toThrow();
  });

  it('have a bound', () => {
    const value = 'x'.repeat(2048);
    expect(check('CustomOauth2', { a: value, b: value, c: value })).not.toThrow();
    expect(check('CustomOauth2', { a: value, b: value, c: value, d: value })).toThrow(refusal('customParameters'));
  });
});
