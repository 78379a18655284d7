import express from 'express';

// As the pages of Express have it: a body is parsed that says that it is JSON.
const app = express();
app.use(express.json({ limit: '100mb' }));
app.get('/ping', (_req, res) => res.json({ status: 'Healthy' }));
app.post('/invocations', (req, res) =>
  res.json({ parsed: req.body?.prompt ?? null, type: req.headers['content-type'] }),
);
app.listen(Number(process.env.PORT ?? 8080), '0.0.0.0');
