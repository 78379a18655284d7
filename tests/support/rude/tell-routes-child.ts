import { appendFileSync } from 'node:fs';
import { hearRoutes } from './declared-routes.ts';

// Loaded into a platform before it starts (`node --import`): it writes each route that is declared, one JSON text a line, to the file
// that ROUTES_TOLD_TO names.
const file = process.env.ROUTES_TOLD_TO ?? '';
hearRoutes((route) => appendFileSync(file, `${JSON.stringify(route)}\n`));
