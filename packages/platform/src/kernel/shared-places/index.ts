export { PLACES, readPlaces } from './places.ts';
export { type PlaceReport, SharedPlaces } from './shared-places.ts';
