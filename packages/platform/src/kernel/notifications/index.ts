export { createTopics, type Topics, webhookMap } from './topics.ts';
