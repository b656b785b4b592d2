export type {
  Tokenized,
  TokenizeFailure,
  TokenizerFile,
  TokenizerFiles,
  TokenizerPool,
} from './preprocessing/contracts.ts';
export type { Preprocessing } from './preprocessing/index.ts';
