export { createTopics, NotificationError, type Topics } from './topics.ts';
