export { Contexts } from './context/index.ts';

import type { Exchange, Path, PipelineRunner } from '../gateway/contracts.ts';

/** Pipelines: steps over routes, called like a route. */
export class Pipelines implements PipelineRunner {
  run(path: Path, x: Exchange): void {
    path.refuse(x, {
      code: 'backend_unavailable',
      message: `The pipeline '${x.route!.name}' cannot be called.`,
      phase: 'before-queue',
    });
  }
}
