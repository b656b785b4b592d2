import type { Exchange } from '../exchange.ts';
import type { Path } from '../path.ts';
export class Batches {
  join(_path: Path, _x: Exchange): boolean {
    return false;
  }
}
