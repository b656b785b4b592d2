export { AnswerComparison } from './shadow/compare/index.ts';
