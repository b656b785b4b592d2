import type { Backend, ContextFitter, Endpoint, Exchange, FittedBody, Path } from '../../gateway/contracts.ts';
import type { Failure } from '../../kernel/errors.ts';

/** Makes transcripts fit the window of the backend that they are sent to. */
export class Contexts implements ContextFitter {
  fit(
    _path: Path,
    x: Exchange,
    backend: Backend,
    _endpoint: Endpoint,
    done: (result: FittedBody | Failure) => void,
  ): () => void {
    const { call, caller } = x;
    if (call?.protocol !== 'openai') throw new Error('only chats have a transcript');
    const { name, settings } = backend;
    done({ backend: name, settings, body: caller.body, request: call.request, tokensIn: undefined });
    return () => undefined;
  }
}
