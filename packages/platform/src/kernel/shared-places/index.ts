export { PLACES, readPlaces } from './places.ts';
export { SharedPlaces } from './shared-places.ts';
